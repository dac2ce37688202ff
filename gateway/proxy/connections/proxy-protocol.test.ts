import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

const folder = mkdtempSync(join(tmpdir(), 'gantry-proxy-protocol-'));
after(() => rmSync(folder, { recursive: true }));
const [certFile, keyFile] = [join(folder, 'a.pem'), join(folder, 'a.key')];
execFileSync(
  'openssl',
  [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    '/CN=a',
    '-keyout',
    keyFile,
    '-out',
    certFile,
  ],
  { stdio: 'ignore' },
);
const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());
const gateway = await TestGateway.start({
  upstream: upstream.url,
  listen: ['127.0.0.1:0', 'tls:127.0.0.1:0'],
  tls: { certFile, keyFile },
  trustProxy: ['127.0.0.2'],
  clientAddress: { proxyProtocol: true },
});
after(async () => await gateway[Symbol.asyncDispose]());

const REQUEST = 'GET /user HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
const SIGNATURE = '\r\n\r\n\0\r\nQUIT\n';

function version2(command: number, family: number, body: Buffer): Buffer {
  const head = Buffer.concat([Buffer.from(SIGNATURE, 'latin1'), Buffer.from([command, family, 0, 0])]);
  head.writeUInt16BE(body.length, 14);
  return Buffer.concat([head, body]);
}
const tcp4 = Buffer.from([198, 51, 100, 7, 127, 0, 0, 1, 0, 80, 0, 80]);
const tcp6 = Buffer.from(`20010db8000700070000000000000001${'00'.repeat(16)}00500050`, 'hex');
const tlvs = Buffer.from('0400030000ff', 'hex');

/** Beginnings of a trusted proxy's connection, and the client at the upstream. */
const rows: readonly (readonly [name: string, header: string | Buffer, client: string])[] = [
  ['version 1, IPv4', 'PROXY TCP4 198.51.100.1 192.0.2.1 1000 80\r\n', '198.51.100.1'],
  ['version 1, IPv6', 'PROXY TCP6 2001:db8::1 2001:db8::2 65535 80\r\n', '2001:db8::1'],
  ['version 1, unknown', 'PROXY UNKNOWN\r\n', '127.0.0.2'],
  ['version 1, unknown with more', `PROXY UNKNOWN ${'f'.repeat(80)}\r\n`, '127.0.0.2'],
  ['version 2, IPv4', version2(0x21, 0x11, tcp4), '198.51.100.7'],
  ['version 2, IPv4, with TLVs', version2(0x21, 0x11, Buffer.concat([tcp4, tlvs])), '198.51.100.7'],
  ['version 2, IPv6', version2(0x21, 0x21, tcp6), '2001:db8:7:7::1'],
  ['version 2, of a Unix socket', version2(0x21, 0x31, Buffer.alloc(216)), '127.0.0.2'],
  ["version 2, the proxy's own", version2(0x20, 0, Buffer.alloc(0)), '127.0.0.2'],
  ["version 2, the proxy's own with addresses", version2(0x20, 0x11, tcp4), '127.0.0.2'],
];
for (const [name, header, client] of rows) {
  for (const pieces of ['whole', 'byte by byte'] as const) {
    test(`${name}, ${pieces}: the client is ${client}`, async () => {
      const socket = await dial();
      const bytes = Buffer.concat([Buffer.from(header as string, 'latin1'), Buffer.from(REQUEST)]);
      if (pieces === 'whole') socket.write(bytes);
      else for (const byte of bytes) await send(socket, Buffer.from([byte]));

      const answer = await text(socket);

      assert.match(answer, /^HTTP\/1\.1 200/);
      assert.equal(upstream.received.at(-1)?.headers['x-forwarded-for'], client);
    });
  }
}

const wrong: readonly (readonly [name: string, header: string | Buffer])[] = [
  ['a request without a header', REQUEST],
  ['a family that differs from the address', 'PROXY TCP4 2001:db8::1 192.0.2.1 1 2\r\n'],
  ['no address', 'PROXY TCP4 banana 192.0.2.1 1 2\r\n'],
  ['no ports', 'PROXY TCP4 192.0.2.1 192.0.2.1\r\n'],
  ['a line without an end', `PROXY TCP4 ${'1'.repeat(200)}`],
  ['lower case', 'proxy TCP4 198.51.100.1 192.0.2.1 1000 80\r\n'],
  ['another version', version2(0x31, 0x11, tcp4)],
  ['another command', version2(0x22, 0x11, tcp4)],
  ['half of the addresses', version2(0x21, 0x21, tcp4)],
  ['64 KB of TLVs', version2(0x21, 0x11, Buffer.alloc(65_000))],
];
for (const [name, header] of wrong) {
  test(`the connection of a trusted proxy ends without an answer: ${name}`, async () => {
    const received = upstream.received.length;
    const socket = await dial();
    socket.on('error', () => socket.destroy());
    socket.write(Buffer.concat([Buffer.from(header as string, 'latin1'), Buffer.from(REQUEST)]));

    const [answer] = await Promise.all([text(socket).catch(() => ''), once(socket, 'close')]);

    assert.equal(answer, '');
    assert.equal(upstream.received.length, received);
  });
}

test('a header of anybody else is no request', async () => {
  const socket = await dial('127.0.0.9');
  socket.write(`PROXY TCP4 198.51.100.1 192.0.2.1 1000 80\r\n${REQUEST}`);

  assert.match(await text(socket), /^HTTP\/1\.1 400/);
});

test('a client that is no proxy is served as before', async () => {
  const { status } = await gateway.request('/user', { from: '127.0.0.9' });

  assert.equal(status, 200);
  assert.equal(upstream.received.at(-1)?.headers['x-forwarded-for'], '127.0.0.9');
});

test('the header stands before the TLS handshake', async () => {
  const { hostname, port } = new URL(gateway.addresses[1]!);
  const raw = connect({ host: hostname, port: Number(port), localAddress: '127.0.0.2' });
  raw.write('PROXY TCP4 198.51.100.21 192.0.2.1 1000 80\r\n');
  const socket = connectTls({ socket: raw, rejectUnauthorized: false });
  socket.write(REQUEST);

  assert.match(await text(socket), /^HTTP\/1\.1 200/);
  const { headers } = upstream.received.at(-1)!;
  assert.deepEqual([headers['x-forwarded-for'], headers['x-forwarded-proto']], ['198.51.100.21', 'https']);
});

test('a proxy that says nothing does not hold up the end of the gateway', async () => {
  await using other = await TestGateway.start({
    upstream: upstream.url,
    trustProxy: ['127.0.0.1'],
    clientAddress: { proxyProtocol: true },
  });
  const socket = other.connect();
  await once(socket, 'connect');
  const closed = once(socket, 'close');
  socket.on('error', () => socket.destroy()).resume();

  other.signal('SIGTERM');
  assert.equal(await other.exited, 0);

  await closed;
});

async function dial(localAddress = '127.0.0.2'): Promise<Socket> {
  const socket = gateway.connect(localAddress);
  await once(socket, 'connect');
  return socket;
}

async function send(socket: Socket, bytes: Buffer): Promise<void> {
  await new Promise((resolve) => socket.write(bytes, resolve));
  await turn();
}

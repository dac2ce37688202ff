import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { RawUpstream } from '@gantry/testing/gateway/raw-upstream.ts';
import { type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../../admin/client.ts';

const settings: Settings = {
  limits: { anonymous: 10_000 },
  timeouts: { upstreamHeadersMs: 1500, idleMs: 1500, drainMs: 300 },
};

const upstream = await TestUpstream.start();
const gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** The gateway's sockets as the upstream has them. */
let joined: Duplex[] = [];
let received: (string | undefined)[] = [];
upstream.onUpgrade = (request, socket, head) => {
  joined.push(socket);
  socket.on('error', () => socket.destroy());
  received = [request.headers.upgrade, request.headers.connection, request.headers['sec-websocket-protocol']];
  if (request.url === '/silent') return void socket.resume();
  if (request.url === '/declined') {
    socket.end('HTTP/1.1 403 No Sockets\r\nX-RateLimit-Limit: 1\r\nContent-Length: 2\r\n\r\nno');
    return;
  }
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-RateLimit-Used: 7\r\nRateLimit: "x";r=7\r\n' +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  if (head.length > 0) socket.write(head);
  socket.pipe(socket);
};

function requestFor(path: string, ...more: readonly string[]): string {
  const headers = ['Host: a', 'Connection: keep-alive, Upgrade', 'Upgrade: websocket', ...more];
  return `GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;
}

async function stateOf(address = '127.0.0.1', at = gateway): Promise<{ used: number; underWay: number }> {
  const { windows, underWay } = await askCaller(at.adminSocket, `ip:${address}`);
  return { used: windows.find(({ name }) => name === 'core')?.used ?? 0, underWay };
}

async function metric(name: string): Promise<number | undefined> {
  return (await gateway.metrics()).get(`gantry_gateway_${name}`);
}

async function nothingLeft(address: string): Promise<void> {
  await eventually('its place is free', async () => (await stateOf(address)).underWay === 0);
  await eventually('no request is under way', async () => (await metric('requests_under_way')) === 0);
  await eventually('no connection is open', async () => (await metric('connections_open')) === 0);
}

test('a WebSocket client of Node talks through the gateway', async () => {
  const socket = new WebSocket(`ws://127.0.0.1:${new URL(gateway.url).port}/echo`);
  await once(socket, 'open');

  // The upstream returns the bytes as they are: this client takes a masked frame of its own for an error and closes.
  socket.send('hello');
  await once(socket, 'close');

  assert.deepEqual(received.slice(0, 1), ['websocket']);
  await nothingLeft('127.0.0.1');
});

test('bytes pass in both directions until one side ends, as one request that is under way all the time', async () => {
  const address = '127.0.0.2';
  using client = await RawClient.connect(gateway, address);
  const head = await client.send(requestFor('/echo', 'Sec-WebSocket-Protocol: chat')).until('\r\n\r\n');

  for (const text of ['one', 'two', '\x00\xff\r\n\r\n']) {
    assert.equal(await client.send(text).until(text), text);
  }
  const during = await stateOf(address);
  client.socket.end();
  await client.closed;

  assert.match(head, /^HTTP\/1.1 101 Switching Protocols\r\n[^]*Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/);
  assert.deepEqual(head.match(/^(?:x-ratelimit-used|ratelimit):.*/gim), ['x-ratelimit-used: 1']);
  assert.deepEqual(received.slice(1), ['upgrade', 'chat']);
  assert.deepEqual(during, { used: 1, underWay: 1 });
  await nothingLeft(address);
  assert.deepEqual(await stateOf(address), { used: 1, underWay: 0 });
});

test('an upgraded connection may be silent for longer than any timeout of requests', async () => {
  using client = await RawClient.connect(gateway, '127.0.0.3');
  await client.send(requestFor('/echo')).until('\r\n\r\n');

  await sleep(3500);

  assert.equal(await client.send('still here').until('here'), 'still here');
});

test('an upstream that ends an upgraded connection ends it for the client', async () => {
  const address = '127.0.0.4';
  joined = [];
  using client = await RawClient.connect(gateway, address);
  await client.send(requestFor('/echo')).until('\r\n\r\n');

  joined[0]?.destroy();
  await client.closed;

  await nothingLeft(address);
});

test('bytes that are sent before the upstream agrees arrive, and in their order', async () => {
  using client = await RawClient.connect(gateway, '127.0.0.5');

  client.send(`${requestFor('/echo')}early`);
  client.send(' bird');
  await client.until('\r\n\r\n');

  assert.equal(await client.until('bird'), 'early bird');
});

test('an upstream that declines is passed on, and the connection ends', async () => {
  const address = '127.0.0.6';
  using client = await RawClient.connect(gateway, address);

  const answer = await client.send(requestFor('/declined')).answer();
  await client.closed;

  assert.deepEqual([answer.status, answer.body], [403, 'no']);
  assert.equal(answer.headers.get('x-ratelimit-limit'), '10000');
  assert.equal((await stateOf(address)).used, 1);
  await nothingLeft(address);
});

test('an upgrade that a limit refuses never reaches the upstream', async () => {
  await using strict = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 0 } });
  joined = [];
  using client = await RawClient.connect(strict);

  const answer = await client.send(requestFor('/echo')).answer();
  await client.closed;

  assert.equal(answer.status, 403);
  assert.match(answer.body, /API rate limit exceeded/);
  assert.equal(joined.length, 0);
});

test('an upstream that does not answer an upgrade is 504', async () => {
  const address = '127.0.0.7';
  using client = await RawClient.connect(gateway, address);

  const answer = await client.send(requestFor('/silent')).answer();

  assert.equal(answer.status, 504);
  assert.ok(answer.headers.has('x-ratelimit-used'));
  await client.closed;
  await nothingLeft(address);
});

test('an upstream that is gone is 502, and one that speaks no HTTP too', async () => {
  await using dead = await RawUpstream.start((socket) => socket.end('SSH-2.0-OpenSSH_9.2p1\r\n'));
  await using behind = await TestGateway.start({ ...settings, upstream: dead.url });
  using client = await RawClient.connect(behind);

  const answer = await client.send(requestFor('/echo')).answer();

  assert.equal(answer.status, 502);
  assert.ok(answer.headers.has('x-ratelimit-used'));
  await eventually('its place is free', async () => (await stateOf('127.0.0.1', behind)).underWay === 0);
});

for (const how of ['destroy', 'resetAndDestroy', 'end'] as const) {
  test(`a client that leaves while the upstream is asked (${how}) frees its place at once`, async () => {
    await using patient = await TestGateway.start({ upstream: upstream.url });
    joined = [];
    using client = await RawClient.connect(patient);
    client.send(requestFor('/silent'));
    await eventually('the upstream is asked', () => joined.length === 1);

    client.socket[how]();

    await eventually('its place is free', async () => (await stateOf('127.0.0.1', patient)).underWay === 0);
    await eventually('the upstream is left', () => !joined[0]!.readable);
    assert.equal((await patient.metrics()).get('gantry_gateway_requests_under_way'), 0);
  });
}

test('a gateway that ends closes upgraded connections when the time for draining is over', async () => {
  await using ending = await TestGateway.start({ ...settings, upstream: upstream.url });
  using client = await RawClient.connect(ending);
  await client.send(requestFor('/echo')).until('\r\n\r\n');

  ending.signal('SIGTERM');
  await ending.logged(/^ending/);
  assert.equal(await client.send('still here').until('here'), 'still here');
  await client.closed;

  assert.equal(await ending.exited, 0);
});

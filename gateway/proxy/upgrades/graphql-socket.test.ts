import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { after, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../../admin/client.ts';
import { frameAt, textFrame, unmask } from './websocket-frames.ts';

const upstream = await TestUpstream.start();
const gateway = await TestGateway.start({
  upstream: upstream.url,
  limits: { anonymous: 1000 },
  secondary: { graphqlCost: 'operation', graphqlPoints: { limit: 12 }, windowSeconds: 3600 },
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

type Message = { id?: string; type: string; payload?: unknown };

/** A GraphQL server that answers each operation with the operation and what the client offered. */
upstream.onUpgrade = (request, socket) => {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  const protocol = request.headers['sec-websocket-protocol']?.split(',')[0] ?? '';
  socket.on('error', () => socket.destroy());
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      `Sec-WebSocket-Protocol: ${protocol}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  const extensions = request.headers['sec-websocket-extensions'];
  let fragments = '';
  readFrames(socket, (opcode, isLast, text) => {
    if (opcode === 8) return void socket.end(Buffer.from([0x88, 0]));
    if (opcode === 9) return void socket.write(Buffer.concat([Buffer.from([0x8a, text.length]), Buffer.from(text)]));
    fragments += text;
    if (!isLast) return;
    const { id, type, payload } = JSON.parse(fragments) as Message;
    fragments = '';
    const answer =
      type === 'connection_init' ? { type: 'connection_ack', payload: { extensions } } : { id, type: 'next', payload };
    socket.write(textFrame(JSON.stringify(answer).slice(0, 200)));
  });
};

function readFrames(socket: Duplex, onFrame: (opcode: number, isLast: boolean, text: string) => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    for (;;) {
      const frame = frameAt(bytes);
      if (frame === undefined || bytes.length < frame.headBytes + frame.payloadBytes) return;
      const payload = bytes.subarray(frame.headBytes, frame.headBytes + frame.payloadBytes);
      bytes = bytes.subarray(frame.headBytes + frame.payloadBytes);
      onFrame(frame.opcode, frame.isLast, unmask(payload, frame.mask).toString());
    }
  });
}

async function pointsOf(address: string): Promise<number | undefined> {
  const { windows } = await askCaller(gateway.adminSocket, `ip:${address}`);
  return windows.find(({ name }) => name === 'points GraphQL')?.used;
}

/** A frame of a client. `first`: the byte with the opcode. */
function masked(first: number, text: string): string {
  const payload = Buffer.from(text);
  const mask = Buffer.from([1, 2, 3, 250]);
  const length =
    payload.length < 126 ? [0x80 | payload.length] : [0x80 | 126, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from([first, ...length]), mask, unmask(payload, mask)]).toString('latin1');
}

async function open(from: string, protocol: string): Promise<RawClient> {
  const client = await RawClient.connect(gateway, from);
  const head = await client
    .send(
      'GET /graphql HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
        `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`,
    )
    .until('\r\n\r\n');
  assert.match(head, /^HTTP\/1.1 101 /);
  return client;
}

test('each operation over a WebSocket is decided by itself, and the connection outlives a refusal', async () => {
  const from = '127.0.0.1';
  const before = (await pointsOf(from)) ?? 0;
  const socket = new WebSocket(`ws://127.0.0.1:${new URL(gateway.url).port}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  const ask = async (message: Message): Promise<Message> => {
    socket.send(JSON.stringify(message));
    const [{ data }] = (await once(socket, 'message')) as [{ data: string }];
    return JSON.parse(data) as Message;
  };
  const subscribe = async (id: string, query: string): Promise<Message> =>
    await ask({ id, type: 'subscribe', payload: { query } });

  const greeting = await ask({ type: 'connection_init' });
  const three = await subscribe('1', '{ a b one: b }');
  const spent = await pointsOf(from);
  const refused = await subscribe('2', 'mutation { a b }');
  const small = await subscribe('3', '{ a }');
  socket.close();
  await once(socket, 'close');

  assert.deepEqual(greeting, { type: 'connection_ack', payload: {} }, 'compression was not offered to the server');
  assert.deepEqual(three, { id: '1', type: 'next', payload: { query: '{ a b one: b }' } });
  assert.deepEqual([before, spent], [0, 4], 'one for the upgrade');
  const [error] = refused.payload as { message: string; extensions: { code: string; retryAfterSeconds: number } }[];
  assert.deepEqual([refused.id, refused.type, error?.extensions.code], ['2', 'error', 'RATE_LIMITED']);
  assert.ok(error!.extensions.retryAfterSeconds > 3000);
  assert.equal(small.id, '3');
  assert.equal(await pointsOf(from), 5);
});

test('the older protocol has its own error, and may be cut into frames and bytes', async () => {
  const from = '127.0.0.2';
  using client = await open(from, 'graphql-ws');
  const start = JSON.stringify({ id: 'x', type: 'start', payload: { query: 'mutation { a b }' } });
  const bytes =
    masked(0x01, start.slice(0, 10)) +
    masked(0x89, 'p') +
    masked(0x00, start.slice(10, 30)) +
    masked(0x80, start.slice(30));

  for (const byte of bytes) client.send(byte);
  const pong = await client.until('\x8a\x01p');
  const first = await client.until('}}');
  client.send(masked(0x82, start));
  const second = await client.until('}}}');

  assert.equal(pong, '\x8a\x01p');
  assert.ok(first.includes('"next"') && first.includes('mutation { a b }'), first);
  assert.ok(second.includes('{"id":"x","type":"error","payload":{"message":'), second);
  assert.equal(await pointsOf(from), 11);
});

test('an unreadable message costs as much as many operations', async () => {
  const from = '127.0.0.3';
  using other = await RawClient.connect(gateway, from);
  const refused = await other
    .send(
      'GET /graphql HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: chat\r\n\r\n',
    )
    .until('\r\n\r\n');
  using client = await open(from, 'graphql-transport-ws');
  const unknown = client.send(masked(0x81, '{"id":"1","type":"what"}'));
  const error = await unknown.until('}]}');
  client.send(masked(0x81, JSON.stringify({ id: '1', type: 'subscribe', payload: { query: '{ a }' } }).padEnd(65_535)));
  await client.closed;

  assert.match(refused, /^HTTP\/1.1 403 /, 'its messages cannot be counted: 50 points');
  assert.ok(error.includes('RATE_LIMITED'), error);
  assert.equal(await pointsOf(from), 1);
});

test('a long message that may pass is passed on as it comes', async () => {
  await using wide = await TestGateway.start({
    ...(gateway.settings as object),
    secondary: { graphqlCost: 'operation' },
  });
  const socket = new WebSocket(`ws://127.0.0.1:${new URL(wide.url).port}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  const received: string[] = [];
  socket.addEventListener('message', ({ data }) => received.push(String(data)));
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: `{ a ${' '.repeat(200_000)}}` } }));
  socket.send(JSON.stringify({ id: '2', type: 'subscribe', payload: { query: '{ a }' } }));

  await eventually('both are answered', () => received.length === 2);
  socket.close();
  await once(socket, 'close');

  assert.deepEqual(
    received.map((text) => text.slice(0, 9)),
    ['{"id":"1"', '{"id":"2"'],
  );
});

test('a message without an end, of frames without content, is not kept', async () => {
  const from = '127.0.0.4';
  using client = await open(from, 'graphql-transport-ws');

  client.send(masked(0x01, '{') + masked(0x00, '').repeat(12_000));

  await eventually('it is refused as one that cannot be read', () => client.socket.closed);
  assert.equal(await pointsOf(from), 1);
});

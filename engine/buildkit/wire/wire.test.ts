import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { Duplex, Readable } from 'node:stream';
import { after, before, suite, test } from 'node:test';

import { GrpcClient } from './client.ts';
import { messagesOf } from './frames.ts';
import { BYTES, field, FLAG, INTEGER, LARGE, list, map, message, nested, TEXT, UNSIGNED } from './message.ts';
import { GrpcServer } from './server.ts';
import { streaming, unary } from './service.ts';
import { GrpcError, StatusCode } from './status.ts';

const Inner = message({ name: field(1, TEXT), number: field(2, INTEGER) });
const All = message({
  text: field(1, TEXT),
  flag: field(2, FLAG),
  mode: field(3, UNSIGNED),
  time: field(4, LARGE),
  bytes: field(5, BYTES),
  inner: field(6, nested(Inner)),
  texts: list(7, TEXT),
  inners: list(8, nested(Inner)),
  texts2: map(9, TEXT),
  inners2: map(10, nested(Inner)),
});
const Text = message({ text: field(1, TEXT) });

test('messages are read as they were written; a field that was not sent has its initial value', () => {
  const value = {
    text: 'ü',
    flag: true,
    mode: 0x8000_01ed,
    time: 1_795_836_105_388_123_456n,
    bytes: Buffer.from([0, 255]),
    inner: { name: 'a', number: -5 },
    texts: ['', 'b'],
    inners: [{ name: 'c', number: 2 ** 40 }],
    texts2: new Map([['k', 'v']]),
    inners2: new Map([['k', { name: 'd', number: 0 }]]),
  };
  assert.deepEqual({ ...All.decode(All.encode(value)), bytes: Buffer.from([0, 255]) }, value);
  const empty = All.decode(new Uint8Array());
  assert.deepEqual([empty.text, empty.inner, empty.texts, empty.texts2.size], ['', undefined, [], 0]);
});

test('fields that are unknown, or of another kind, are skipped', () => {
  const Other = message({ text: field(2, TEXT), more: field(50, nested(Text)) });
  const bytes = Other.encode({ text: 'not a flag', more: { text: 'x' } });
  assert.equal(All.decode(bytes).flag, false);
  assert.throws(() => All.decode(Buffer.from([0x0a, 0x05, 0x61])));
});

test('a message that is too long, compressed or cut off is refused', async () => {
  const read = async (...bytes: number[]): Promise<unknown> =>
    await Array.fromAsync(messagesOf(Readable.from([Buffer.from(bytes)])));
  await assert.rejects(read(0, 2, 0, 0, 0), { code: 8 });
  await assert.rejects(read(1, 0, 0, 0, 0), { code: 12 });
  await assert.rejects(read(0, 0, 0, 0, 2, 1), { code: 13 });
  assert.deepEqual(await read(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7), [Buffer.alloc(0), Buffer.from([7])]);
});

suite('calls', () => {
  let grpc: GrpcServer;
  let listener: Server;
  let client: GrpcClient;
  const waiting = Promise.withResolvers<void>();
  before(async () => {
    grpc = new GrpcServer(
      new Map([
        ['/t/Echo', unary(Text, Text, (request) => request)],
        ['/t/Client', unary(Text, Text, (_request, call) => ({ text: call.client ?? '' }))],
        [
          '/t/Sum',
          async function* sum(requests) {
            let bytes = 0;
            for await (const message of requests) bytes += message.length;
            yield Text.encode({ text: String(bytes) });
          },
        ],
        [
          '/t/Fail',
          unary(Text, Text, () => {
            throw new GrpcError(StatusCode.NOT_FOUND, 'no such thing: ü%\n');
          }),
        ],
        [
          '/t/Count',
          streaming(Text, Text, async function* count(_request, { signal }) {
            try {
              for (let number = 0; !signal.aborted; number += 1) yield await Promise.resolve({ text: String(number) });
            } finally {
              waiting.resolve();
            }
          }),
        ],
      ]),
      (error) => (error instanceof GrpcError ? error : new GrpcError(StatusCode.UNKNOWN, String(error))),
    );
    listener = createServer((socket) => grpc.accept(socket, 'one')).listen(0, '127.0.0.1');
    await once(listener, 'listening');
    client = new GrpcClient(connect((listener.address() as AddressInfo).port, '127.0.0.1'));
  });
  after(() => {
    client.close();
    listener.close();
  });
  const signal = new AbortController().signal;

  test('are answered, also with messages of megabytes', async () => {
    for (const text of ['', 'x'.repeat(5_000_000)]) {
      assert.deepEqual(await client.call('/t/Echo', Text, Text, { text }, signal), { text });
    }
  });

  test('take any number of messages, each of which is dropped when the next one is asked for', async () => {
    using exchange = client.exchange('/t/Sum', Text, Text, signal);
    const [count, bytes] = [100, 1_000_000];
    for (let sent = 0; sent < count; sent += 1) await exchange.send({ text: 'x'.repeat(bytes) });
    exchange.end();
    const [sum] = await Array.fromAsync(exchange.responses);
    assert.ok(Number(sum!.text) > count * bytes);
  });

  test('know the name of their client, also behind a connection that was closed before it was accepted', async () => {
    grpc.accept(new Duplex().destroy(), 'gone');
    const { port } = listener.address() as AddressInfo;
    const other = new GrpcClient(connect(port, '127.0.0.1'));
    assert.deepEqual(await other.call('/t/Client', Text, Text, {}, signal), { text: 'one' });
    other.close();
  });

  test('that fail tell their status and its words', async () => {
    await assert.rejects(client.call('/t/Fail', Text, Text, {}, signal), { code: 5, message: 'no such thing: ü%\n' });
    await assert.rejects(client.call('/t/Nope', Text, Text, {}, signal), { code: 12, message: /t\/Nope is not part/ });
  });

  test('end with the client that leaves a stream', async () => {
    {
      using exchange = client.exchange('/t/Count', Text, Text, signal);
      await exchange.send({});
      let seen = 0;
      for await (const { text } of exchange.responses) if (Number(text) === 100 && (seen = 100) > 0) break;
      assert.equal(seen, 100);
    }
    await waiting.promise;
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { after, before, suite, test } from 'node:test';

import { Packet, PacketType, Stat } from '../messages/file-sync.ts';
import type { Sent } from '../wire/message.ts';
import { GrpcServer } from '../wire/server.ts';
import type { Call } from '../wire/service.ts';
import { GrpcError } from '../wire/status.ts';
import { syncedFiles, type Wanted } from './file-sync.ts';
import { Session } from './session.ts';

type Out = Sent<typeof Packet>;
const PATH = '/moby.filesync.v1.FileSync/DiffCopy';

/** A client that sends what the test says; `asked`: the ids of files that it was asked for. */
type Client = (asked: AsyncIterable<number>, call: Call) => AsyncIterable<Out>;

suite('files of a client', () => {
  let listener: Server;
  let client: Client;
  let session: Session;
  before(async () => {
    const grpc = new GrpcServer(
      new Map([
        [
          PATH,
          async function* serve(requests, call) {
            const asked = (async function* ids() {
              for await (const bytes of requests) {
                const { type, id } = Packet.decode(bytes);
                if (type === PacketType.FIN) return;
                yield id;
              }
            })();
            for await (const packet of client(asked, call)) yield Packet.encode(packet);
          },
        ],
      ]),
      (error) => new GrpcError(2, String(error)),
    );
    listener = createServer((socket) => grpc.accept(socket)).listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const socket = connect((listener.address() as AddressInfo).port, '127.0.0.1');
    session = new Session(socket, { id: 's', methods: [PATH] });
  });
  after(() => {
    session.close();
    listener.close();
  });

  const stat = (path: string, size: number, mode = 0o644): Out => ({
    type: PacketType.STAT,
    stat: Stat.encode({ path, size, mode, modified: 1n }),
  });
  const LAST: Out = { type: PacketType.STAT };
  const FIN: Out = { type: PacketType.FIN };
  const data = (id: number, text: string): Out => ({ type: PacketType.DATA, id, data: Buffer.from(text) });

  async function received(by: Client, wanted: Partial<Wanted> = {}): Promise<[string, string][]> {
    client = by;
    const files: [string, string][] = [];
    const all = syncedFiles(session, { folder: 'context', ...wanted }, new AbortController().signal);
    for await (const {
      stat: { path },
      content,
    } of all) {
      files.push([path, Buffer.concat(await Array.fromAsync(content)).toString()]);
    }
    return files;
  }

  test('come in their order, however the client sends their contents', async () => {
    const sizes = Array.from({ length: 200 }, (_, index) => (index + 1) * 37);
    const files = await received(async function* sent(asked) {
      for (const [id, size] of sizes.entries()) yield stat(`f${id}`, size);
      yield LAST;
      let pair: number[] = [];
      for await (const id of asked) {
        pair.push(id);
        if (pair.length < 2 && id < sizes.length - 1) continue;
        for (const each of pair.toReversed()) yield data(each, 'x'.repeat(sizes[each]! / 37));
        for (const each of pair) {
          yield data(each, 'y'.repeat(sizes[each]! - sizes[each]! / 37));
          yield data(each, '');
        }
        pair = [];
      }
      yield FIN;
    });
    assert.deepEqual(
      files.map(([path, text]) => [path, text.length]),
      sizes.map((size, id) => [`f${id}`, size]),
    );
  });

  test('the client gets the patterns one by one, and escaped beyond ASCII', async () => {
    let headers: Call['headers'] = {};
    const by: Client = async function* none(_asked, call) {
      headers = call.headers;
      yield LAST;
      yield FIN;
    };
    await received(by, { excluded: ['a, b', '!c'], paths: ['ü'] });
    assert.equal(headers['dir-name'], 'context');
    assert.equal(headers['exclude-patterns'], 'a, b, !c'); // as Node shows headers that are repeated
    assert.deepEqual([headers['followpaths'], headers['followpaths-encoded']], ['%C3%BC', '1']);
  });

  const BAD: readonly (readonly [string, readonly Out[], RegExp])[] = [
    ['a file that shrinks', [stat('f', 5), LAST, data(0, 'abc'), data(0, '')], /f became shorter while it was sent/],
    ['a content of nobody', [stat('f', 5), LAST, data(7, 'abc')], /a file that was not asked for/],
    ['a negative size', [stat('f', -5), LAST], /f has no valid size/],
    [
      'an error',
      [stat('f', 5), LAST, { type: PacketType.ERROR, data: Buffer.from('boom') }],
      /error from sender: boom/,
    ],
    ['an early end', [stat('f', 5)], /too early/],
  ];
  for (const [name, packets, words] of BAD) {
    test(`${name} ends the transfer`, async () => {
      await assert.rejects(
        received(async function* bad() {
          yield* packets;
          await Promise.resolve();
        }),
        words,
      );
    });
  }

  test('a file that grows is cut at the size that the client told', async () => {
    const files = await received(async function* grown(asked) {
      yield stat('f', 3);
      yield LAST;
      for await (const id of asked) {
        yield data(id, 'abcdef');
        yield data(id, 'more');
        yield data(id, '');
      }
      yield FIN;
    });
    assert.deepEqual(files, [['f', 'abc']]);
  });

  test('names without an end are refused at the limit', async () => {
    await assert.rejects(
      received(async function* endless() {
        for (let id = 0; ; id += 1) yield await Promise.resolve(stat(`${id}${'x'.repeat(30_000)}`, 0));
      }),
      /too many entries/,
    );
  });
});

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { fields, FLAG, frame, FRAME, PREFACE, uint32 } from '@gantry/testing/streams/http2-frames.ts';
import { upgraded } from '@gantry/testing/streams/upgraded.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const MAX_GROWTH_MB = 64;
const FRAMES = 200_000;
const PIECE = 2000;
const LIST_WORKERS = '/moby.buildkit.v1.Control/ListWorkers';
const SETTINGS = frame(FRAME.SETTINGS, 0, 0);

const callOf = (path: string, more: readonly (readonly [string, string])[] = []): Buffer =>
  fields([
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'd'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ...more,
  ]);
const CALL = callOf(LIST_WORKERS);
const idOf = (at: number): number => 2 * at + 1;
const callAt = (at: number, flags: number = FLAG.END_HEADERS): Buffer => frame(FRAME.HEADERS, flags, idOf(at), CALL);
const EMPTY_MESSAGE = Buffer.alloc(5);
const LONG_CALL = callOf(
  LIST_WORKERS,
  Array.from({ length: 1000 }, (_, at) => [`x-${at}`, 'v'] as const),
);

/** Frames by their numbers, behind the beginning of a connection. */
const OF_CALLERS: Readonly<Record<string, (at: number) => Buffer>> = {
  'calls that are reset at once': (at) => Buffer.concat([callAt(at), frame(FRAME.RESET, 0, idOf(at), uint32(8))]),
  'calls that are ended and reset': (at) =>
    Buffer.concat([callAt(at, FLAG.END_HEADERS | FLAG.END_STREAM), frame(FRAME.RESET, 0, idOf(at), uint32(8))]),
  'calls beyond their limit': (at) => callAt(at),
  'one field name without an end': (at) =>
    at === 0
      ? frame(FRAME.HEADERS, 0, 1, Buffer.concat([CALL, Buffer.from([0, 127, 255, 255, 255, 15])]))
      : frame(FRAME.CONTINUATION, 0, 1, Buffer.alloc(1000, 'x')),
  'headers that go on': (at) =>
    at === 0 ? frame(FRAME.HEADERS, 0, 1, CALL) : frame(FRAME.CONTINUATION, 0, 1, fields([['x', 'y'.repeat(500)]])),
  'empty continuations': (at) => (at === 0 ? frame(FRAME.HEADERS, 0, 1, CALL) : frame(FRAME.CONTINUATION, 0, 1)),
  'calls with a thousand fields': (at) => frame(FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, idOf(at), LONG_CALL),
  'empty pieces of a message': (at) => (at === 0 ? callAt(0) : frame(FRAME.DATA, 0, 1)),
  'answers that find no window': (at) =>
    at === 0
      ? frame(FRAME.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
      : Buffer.concat([callAt(at), frame(FRAME.DATA, FLAG.END_STREAM, idOf(at), EMPTY_MESSAGE)]),
  priorities: (at) => frame(FRAME.PRIORITY, 0, idOf(at), Buffer.from([0, 0, 0, 0, 1])),
};
const OF_BOTH: Readonly<Record<string, (at: number) => Buffer>> = {
  settings: () => frame(FRAME.SETTINGS, 0, 0, Buffer.from([0, 3, 0, 0, 0, 100])),
  pings: () => frame(FRAME.PING, 0, 0, Buffer.alloc(8)),
  'windows of one byte': () => frame(FRAME.WINDOW, 0, 0, uint32(1)),
  'acknowledgements of nothing': () => frame(FRAME.PING, FLAG.ACK, 0, Buffer.alloc(8)),
  'frames of no known type': () => frame(0x42, 0, 0, Buffer.alloc(100)),
};

suite('floods of HTTP/2', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
    await flood('/grpc', () => SETTINGS, PIECE); // the parts for BuildKit are loaded
    await flood('/session', () => SETTINGS, PIECE);
  });
  after(async () => await engine[Symbol.asyncDispose]());

  let sessions = 0;
  async function open(path: '/grpc' | '/session'): Promise<Socket> {
    sessions += 1;
    const headers = path === '/session' ? [`X-Docker-Expose-Session-Uuid: s${sessions}`] : [];
    const socket = await upgraded(engine.socketPath, path, headers);
    socket.on('error', () => undefined);
    socket.write(path === '/grpc' ? Buffer.concat([PREFACE, SETTINGS]) : SETTINGS);
    return socket;
  }

  /** Sends frames without reading, until the daemon takes no more of them or closes the connection. */
  async function flood(path: '/grpc' | '/session', frameAt: (at: number) => Buffer, count = FRAMES): Promise<void> {
    const socket = await open(path);
    for (let at = 0; at < count && !socket.destroyed; at += PIECE) {
      const piece = Buffer.concat(Array.from({ length: PIECE }, (_, more) => frameAt(at + more)));
      socket.write(piece);
      for (let pings = 0; pings < 20 && socket.writableNeedDrain; pings += 1) await answers();
      if (socket.writableNeedDrain) break;
    }
    await answers();
    socket.destroy();
  }

  async function answers(): Promise<void> {
    assert.equal((await engine.get('/_ping')).status, 200);
  }

  for (const path of ['/grpc', '/session'] as const) {
    const kinds = path === '/grpc' ? { ...OF_CALLERS, ...OF_BOTH } : OF_BOTH;
    for (const [name, frameAt] of Object.entries(kinds)) {
      test(`${path}: ${name}`, async () => {
        await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => await flood(path, frameAt));
      });
    }
  }

  test('a connection that begins with HTTP/2 beyond the limit is refused once, and closed', async () => {
    const refused = Promise.withResolvers<string>();
    const sockets = Array.from({ length: 200 }, () => {
      const socket = connect(engine.socketPath, () => socket.write(Buffer.concat([PREFACE, SETTINGS])));
      let said = '';
      socket.on('data', (piece: Buffer) => (said += piece.toString('latin1')));
      return socket.on('close', () => refused.resolve(said));
    });

    const said = await refused.promise;

    assert.match(said, /^HTTP\/1\.1 500 [^]*too many connections of builders are open/);
    assert.equal(said.match(/HTTP\/1\.1/g)?.length, 1);
    for (const socket of sockets) socket.destroy();
    await eventually('others can connect', async () => {
      (await upgraded(engine.socketPath, '/grpc')).destroy();
      return true;
    });
  });

  test('/grpc: 300 connections with 128 calls each', async () => {
    const calls = Buffer.concat(Array.from({ length: 128 }, (_, at) => callAt(at)));
    await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
      const sockets: Socket[] = [];
      let refused = 0;
      for (let at = 0; at < 300; at += 1) {
        try {
          const socket = await open('/grpc');
          socket.write(calls);
          sockets.push(socket);
        } catch (error) {
          assert.match(String(error), /HTTP\/1\.1 5\d\d [^]*too many connections of builders are open/);
          refused += 1;
        }
      }
      await answers();
      for (const socket of sockets) socket.destroy();
      assert.ok(refused > 0);
      // The places of connections that are over are free again.
      await eventually('another connection', async () => {
        try {
          (await open('/grpc')).destroy();
          return true;
        } catch {
          return false;
        }
      });
    });
  });
});

import assert from 'node:assert/strict';
import type { Duplex, Readable } from 'node:stream';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';

/** A million by hand: `GANTRY_LINES=1000000 ./gantry test engine/containers/streams/joined.root.test.ts`. */
const LINES = Number(process.env.GANTRY_LINES ?? 100_000);
const BURSTS = 100;

suite(`of ${LINES} numbered lines none is lost and none comes twice`, { concurrency: false, timeout: 900_000 }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** It writes all lines within some seconds, into a log that is rotated again and again; the last quarter after `finish`. */
  async function writer(options: Record<string, string> = {}): Promise<string> {
    const burst = LINES / BURSTS;
    const wait = `[ $i -ne ${(BURSTS * 3) / 4} ] || until [ -e /go ]; do usleep 10000; done`;
    const write = `seq $((i*${burst})) $(((i+1)*${burst}-1)); i=$((i+1)); usleep 20000`;
    const script = `i=0; while [ $i -lt ${BURSTS} ]; do ${wait}; ${write}; done; rm -f /go`;
    const Config = { 'max-size': `${Math.ceil(LINES / 200)}k`, 'max-file': '1000', ...options };
    const HostConfig = { NetworkMode: 'none', LogConfig: { Type: 'json-file', Config } };
    return await engine.create(['sh', '-c', script], { HostConfig });
  }

  const begin = async (id: string): Promise<void> => void (await engine.post(`/containers/${id}/start`));

  async function finish(id: string): Promise<void> {
    const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['touch', '/go'] });
    assert.equal((await engine.post(`/exec/${body.Id}/start`, { Detach: true })).status, 200);
  }

  async function hasWritten(id: string, number: number): Promise<void> {
    for (;;) {
      const last = (await linesOf(await engine.stream('GET', `/containers/${id}/logs?stdout=1&tail=1`))).at(-1) ?? -1;
      if (last >= number) return;
      await setTimeout(10);
    }
  }

  /** A client that has its stream already; `lines` are those until the end. */
  async function follow(id: string, query = ''): Promise<Client> {
    return { lines: linesOf(await engine.stream('GET', `/containers/${id}/logs?follow=1&stdout=1${query}`)) };
  }

  async function attach(id: string, query = '&logs=1&stream=1', pauseMs = 0): Promise<Client> {
    const { socket } = await engine.hijack(`/containers/${id}/attach?stdout=1${query}`);
    return { lines: linesOf(socket, pauseMs) };
  }

  const linesOfAll = async (clients: readonly Client[]): Promise<number[][]> =>
    await Promise.all(clients.map(async ({ lines }) => await lines));

  test('by a follow or an attach, from before the start, from the middle, and by a slow reader', async () => {
    const id = await writer();
    const clients = [await attach(id, '&stream=1')];
    await begin(id);
    clients.push(await follow(id), await attach(id, '&logs=1&stream=1', 5));
    await hasWritten(id, LINES / 4);
    clients.push(await follow(id), await attach(id), await attach(id, '&logs=1&stream=1', 5));
    await hasWritten(id, LINES / 2);
    clients.push(await follow(id), await attach(id));
    await finish(id);

    for (const lines of await linesOfAll(clients)) assertWhole(lines, 0, LINES);
    await engine.delete(`/containers/${id}`);
  });

  test('from the middle on, with `tail`, with `since`, and without what was before; of a compressed log', async () => {
    const id = await writer({ compress: 'true' });
    await begin(id);
    await hasWritten(id, LINES / 4);
    const since = String(Date.now() / 1000);
    const clients = [await follow(id, '&tail=100'), await follow(id, `&since=${since}`), await attach(id, '&stream=1')];
    await hasWritten(id, LINES / 2);
    clients.push(await follow(id, `&since=${since}`), await follow(id, `&since=${since}&tail=1000`));
    await finish(id);

    const all = await linesOfAll(clients);
    all[2]!.shift(); // who wants only what comes may begin within a line

    const [tail = 0, sinceThen = 0, , sinceLater, both = 0] = all.map(([first]) => first ?? -1);
    for (const lines of all) assertWhole(lines, lines[0]!, LINES);
    assert.ok(tail >= LINES / 4 - 100, `the tail begins at ${tail}`);
    assert.equal(sinceLater, sinceThen);
    assert.ok(both >= LINES / 2 - 1000, `the tail of what was since begins at ${both}`);
    await engine.delete(`/containers/${id}`);
  });

  test('while the daemon is killed, and by its next one; of a compressed log', async () => {
    const id = await writer({ compress: 'true' });
    await begin(id);
    const cut = [await follow(id), await attach(id), await attach(id, '&logs=1&stream=1', 5)];
    await hasWritten(id, LINES / 4);
    await engine.kill();
    await engine.startAgain();
    const clients = [await follow(id), await attach(id)];
    await finish(id);

    for (const lines of await linesOfAll(clients)) assertWhole(lines, 0, LINES);
    for (const lines of await linesOfAll(cut)) assertWhole(lines, 0, lines.length);
    assertWhole(await (await follow(id)).lines, 0, LINES);
    await engine.delete(`/containers/${id}`);
  });

  test('over a restart each run is whole', async () => {
    const id = await writer();
    await begin(id);
    const first = await attach(id);
    await hasWritten(id, (LINES * 3) / 4 - 1); // now it waits: none of its lines is cut in two
    await engine.post(`/containers/${id}/restart?t=0`);
    const second = await follow(id);
    await finish(id);

    const lines = await second.lines;
    const again = (LINES * 3) / 4;
    assertWhole(await first.lines, 0, again);
    assertWhole(lines.slice(0, again), 0, again);
    assertWhole(lines.slice(again), 0, LINES);
    await engine.delete(`/containers/${id}`);
  });
});

type Client = Readonly<{ lines: Promise<number[]> }>;

function assertWhole(lines: readonly number[], from: number, to: number): void {
  const wrong = lines.findIndex((line, index) => line !== from + index);
  assert.equal(wrong, -1, `line ${from + wrong} is ${lines.slice(wrong, wrong + 3).join()}`);
  assert.equal(lines.length, to - from);
}

/** The numbers in all frames that came whole, until the stream ends or is cut. */
async function linesOf(stream: Readable | Duplex, pauseMs = 0): Promise<number[]> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of stream) {
      chunks.push(chunk as Buffer);
      if (pauseMs > 0) await setTimeout(pauseMs);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    assert.ok(code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE', `it was cut: ${String(error)}`);
  }
  const text = payloadOf(Buffer.concat(chunks));
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .slice(0, -1)
    .map(Number);
}

function payloadOf(bytes: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= bytes.length;) {
    const end = at + 8 + bytes.readUInt32BE(at + 4);
    if (end > bytes.length) break;
    parts.push(bytes.subarray(at + 8, end));
    at = end;
  }
  return Buffer.concat(parts).toString();
}

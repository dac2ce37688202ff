import assert from 'node:assert/strict';
import { mkdtempDisposableSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { HistoryStore } from './history-store.ts';
import type { BuildRecord } from './record.ts';
import { RecordedLog, statusesIn } from './recorded-log.ts';

const BEGIN = Temporal.Instant.from('2026-01-01T00:00:00Z');

function recordOf(at: number): BuildRecord {
  const createdAt = BEGIN.add({ minutes: at }).toString();
  const steps = { total: 0, cached: 0, completed: 0 };
  const nothing = { attributes: {}, exporters: [], response: {}, warnings: 0, isPinned: false };
  return { ref: `ref ${at}`, createdAt, completedAt: createdAt, steps, ...nothing };
}

function storeIn(dataRoot: string): HistoryStore {
  return new HistoryStore({ config: { dataRoot }, log: { warn: () => undefined } } as never);
}

test('the newest fifty builds and the pinned ones are kept, also by the next daemon', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-history-'));
  const store = storeIn(place.path);
  store.add(recordOf(0), Buffer.from(''));
  assert.equal(store.pin('ref 0', true), true);

  const gone = Array.from({ length: 60 }, (_, at) => store.add(recordOf(at + 1), Buffer.from(''))).flat();

  assert.deepEqual(
    gone,
    Array.from({ length: 10 }, (_, at) => `ref ${at + 1}`),
  );
  const refs = store.all().map(({ ref }) => ref);
  assert.deepEqual([refs.length, refs[0], refs.at(-1)], [51, 'ref 60', 'ref 0']);
  assert.deepEqual(
    storeIn(place.path)
      .all()
      .map(({ ref }) => ref),
    refs,
  );
});

test('files of a daemon that was killed in the middle are removed', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-history-'));
  const store = storeIn(place.path);
  store.add(recordOf(1), Buffer.from('log'));
  const folder = join(place.path, 'build-history');
  const whole = readdirSync(folder);
  for (const name of ['a.log', 'b.json', 'c.json.new']) writeFileSync(join(folder, name), '{"ref":');

  const next = storeIn(place.path);

  assert.deepEqual(readdirSync(folder), whole);
  assert.equal(String(await next.log('ref 1')), 'log');
  assert.equal((await next.log('other')).length, 0);
});

test('a stored log has a limit, and says so', () => {
  const log = new RecordedLog();
  const timestamp = { seconds: 1, nanos: 0 };
  for (let at = 0; at < 300; at += 1) {
    log.add({ logs: [{ vertex: 'v', timestamp, stream: 1, text: Buffer.alloc(10_000, 'x') }] });
    log.add({ statuses: [{ id: 'passing', vertex: 'v', current: at }] });
  }
  log.add({ vertexes: [{ digest: 'v', name: 'step', completed: timestamp, cached: true }] });

  const bytes = log.bytes();
  const read = [...statusesIn(bytes)];

  assert.ok(bytes.length < 1_100_000, `${bytes.length}`);
  const last = read.flatMap(({ logs = [] }) => logs).at(-1)!;
  assert.match(Buffer.from(last.text!).toString(), /output clipped/);
  assert.deepEqual(
    read.at(-1)!.vertexes!.map(({ name }) => name),
    ['step'],
  );
  assert.deepEqual(
    read.flatMap(({ statuses = [] }) => statuses),
    [],
  );
  assert.deepEqual(log.steps, { total: 1, cached: 1, completed: 1 });
  assert.deepEqual([...statusesIn(bytes.subarray(0, -1))].length, read.length - 1);
});

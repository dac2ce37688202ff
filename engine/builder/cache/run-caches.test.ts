import assert from 'node:assert/strict';
import { existsSync, mkdtempDisposableSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import type { Config } from '../../config/daemon-config.ts';
import { systemClock } from '../../lib/clock.ts';
import { Background } from '../../lib/concurrency/background.ts';
import { RunCaches } from './run-caches.ts';

const OWNER = { uid: process.getuid!(), gid: process.getgid!(), mode: 0o755 };

test('the limit of caches counts again after a failed measurement', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-caches-'));
  const failed: string[] = [];
  const log = { error: (_details: object, message: string) => void failed.push(message), warn: () => undefined };
  const config = { dataRoot: place.path, buildCacheBytes: 1000 } as Config;
  await using background = new Background(systemClock, log);
  await using caches = new RunCaches({ background, live: { current: config }, log });
  const nowhere = join(place.path, 'build-caches', 'nowhere');
  let large: string;
  {
    using cache = await caches.take('large', OWNER, 'shared');
    large = cache.path;
    writeFileSync(join(large, 'file'), Buffer.alloc(100_000));
    symlinkSync('missing', nowhere); // nobody can say when it was used last
  }
  await eventually('a failure', () => failed.length > 0);
  unlinkSync(nowhere);

  (await caches.take('another', OWNER, 'shared'))[Symbol.dispose]();

  await eventually('the large folder is removed', () => !existsSync(large));
  assert.equal(failed.length, 1);
});

test('prune removes the least recently used folders that nobody uses, until the rest is small enough', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-caches-'));
  const log = { error: (_details: object, message: string) => assert.fail(message), warn: () => undefined };
  const config = { dataRoot: place.path, buildCacheBytes: 1_000_000 } as Config;
  await using background = new Background(systemClock, log);
  await using caches = new RunCaches({ background, live: { current: config }, log });
  for (const [index, id] of ['old', 'newer', 'used'].entries()) {
    const cache = await caches.take(id, OWNER, 'shared');
    writeFileSync(join(cache.path, 'file'), Buffer.alloc(1000));
    cache[Symbol.dispose]();
    utimesSync(join(cache.path, '..'), index + 1, index + 1);
  }
  const before = (await caches.list()).toSorted((a, b) => a.usedAt.epochMilliseconds - b.usedAt.epochMilliseconds);
  using _used = await caches.take('used', OWNER, 'shared');

  const kept = await caches.prune(
    () => 3000,
    () => true,
  );
  const unmatched = await caches.prune(
    () => 0,
    () => false,
  );
  const one = await caches.prune(
    () => 2000,
    () => true,
  );
  const all = await caches.prune(
    () => 0,
    () => true,
  );

  assert.deepEqual(
    before.map(({ bytes, isUsed }) => [bytes, isUsed]),
    [
      [1000, false],
      [1000, false],
      [1000, false],
    ],
  );
  assert.deepEqual(
    [kept, unmatched],
    [
      { ids: [], bytes: 0 },
      { ids: [], bytes: 0 },
    ],
  );
  assert.deepEqual(one, { ids: [before[0]!.id], bytes: 1000 });
  assert.deepEqual(all, { ids: [before[1]!.id], bytes: 1000 });
  assert.deepEqual(
    (await caches.list()).map(({ id, isUsed }) => [id, isUsed]),
    [[before[2]!.id, true]],
  );
});

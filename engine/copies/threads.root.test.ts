import assert from 'node:assert/strict';
import { mkdirSync, mkdtempDisposableSync, readdirSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { pino } from 'pino';

import { systemClock, type Clock } from '../lib/clock.ts';
import { Background } from '../lib/concurrency/background.ts';
import { Copies } from './copies.ts';

/** Threads are idle at once, not after ten seconds. */
const hurried: Clock = { now: () => systemClock.now(), after: (_milliseconds, run) => systemClock.after(0, run) };

/** Descriptors of this process by which mounts and their namespaces are held. */
function held(): string[] {
  const names = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return []; // the descriptor of this listing
    }
  });
  return names.filter((name) => name === '/' || name.startsWith('mnt:'));
}

test('threads for copies end without descriptors of theirs', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'gantry-copies-'));
  for (const name of ['hidden', 'upper', 'lower']) mkdirSync(join(folder.path, name));
  await using copies = new Copies(new Background(hurried, pino({ level: 'silent' })), join(folder.path, 'hidden'));
  const before = held();

  for (let round = 0; round < 3; round += 1) {
    const changes = [1, 2, 3].map(
      async () => await copies.changes(join(folder.path, 'upper'), [join(folder.path, 'lower')]),
    );
    assert.deepEqual((await Promise.all(changes)).map(String), ['null', 'null', 'null']);
    await eventually(
      'the threads have ended',
      async () => (await Promise.resolve(held())).length <= before.length || undefined,
    );
  }

  assert.deepEqual(held(), before);
});

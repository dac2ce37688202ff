import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { OUTPUT, seen, TestBundle } from '@gantry/testing/test-bundle.ts';

function pssBytes(pid: number): number {
  return Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) * 1024;
}

test('a shim that serves ten clients, five of which were slow, takes less than half a megabyte', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'seq 300000; echo whole; cat'], { openStdin: true });
  const clients = await Promise.all(Array.from({ length: 10 }, async () => await bundle.attach(shim, OUTPUT)));
  await shim.start();
  await Promise.all(clients.slice(0, 5).map(async (fast) => await seen(fast, 'whole\n')));
  await Promise.all(clients.slice(5).map(async (slow) => await seen(slow, 'whole\n')));

  const taken = pssBytes(shim.pid);

  assert.ok(taken < 500_000, `${taken} bytes`);
});

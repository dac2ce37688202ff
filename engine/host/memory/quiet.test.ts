import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { test } from 'node:test';

import { growthBy, leastOf } from '@gantry/testing/bytes-in-use.ts';

import { systemClock, type Clock } from '../../lib/clock.ts';
import { shrinkWhenQuiet } from './quiet.ts';

const MIB = 1024 * 1024;

test('memory of work that is over is given back at the next quiet look', async () => {
  const look = looks();
  const twoLooks = (): void => {
    look(); // the work itself was not quiet
    look();
  };

  // V8 may have given some of it back by itself.
  const growth = await leastOf(8, -20 * MIB, async () => {
    work();
    return await growthBy(twoLooks, () => process.memoryUsage.rss());
  });

  assert.ok(growth < -20 * MIB, `${-growth} bytes are given back`);
});

test('what steady work needs is taken from it once, not at each look', () => {
  const look = looks();
  const givenBack = (): number => {
    useCode();
    const before = process.memoryUsage.rss();
    look();
    return before - process.memoryUsage.rss();
  };
  look(); // what was before was not quiet
  const [first = 0, ...later] = Array.from({ length: 5 }, givenBack);

  assert.ok(first > 8 * MIB, `${first} bytes are given back`);
  for (const bytes of later) assert.ok(bytes < 4 * MIB, `then ${later.join(', ')} bytes`);
});

/** The next look of a process that has just begun to look after its memory. */
function looks(): () => void {
  let look = (): void => assert.fail('nobody looks');
  const clock: Clock = {
    ...systemClock,
    after: (_milliseconds, callback) => {
      look = callback;
      return { [Symbol.dispose]: () => undefined };
    },
  };
  shrinkWhenQuiet(clock);
  return () => look();
}

/** Touches the whole code of Node, as if it ran. */
function useCode(): void {
  const code = readFileSync('/proc/self/maps', 'utf8')
    .split('\n')
    .find((line) => line.endsWith(process.execPath) && line.includes('r-xp'))!;
  const [start = 0, end = 0] = code
    .split(' ', 1)[0]!
    .split('-')
    .map((address) => parseInt(address, 16));
  const memory = openSync('/proc/self/mem', 'r');
  const page = Buffer.alloc(1);
  for (let at = start; at < end; at += 4096) readSync(memory, page, 0, 1, at);
  closeSync(memory);
}

function work(): void {
  const made = Array.from({ length: 1_000_000 }, (_, number) => ({ number }));
  assert.equal(made.length, 1_000_000);
}

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { growthBy, leastOf } from '@gantry/testing/bytes-in-use.ts';

import { systemClock, type Clock } from '../lib/clock.ts';
import { shrinkWhenQuiet } from './quiet.ts';

test('memory of work that is over is given back at the next quiet look', async () => {
  let look = (): void => assert.fail('nobody looks');
  const clock: Clock = {
    ...systemClock,
    after: (_milliseconds, callback) => {
      look = callback;
      return { [Symbol.dispose]: () => undefined };
    },
  };
  shrinkWhenQuiet(clock);
  const twoLooks = (): void => {
    look(); // the work itself was not quiet
    look();
  };

  // V8 may have given some of it back by itself.
  const growth = await leastOf(8, -20 * 1024 * 1024, async () => {
    work();
    return await growthBy(twoLooks, () => process.memoryUsage.rss());
  });

  assert.ok(growth < -20 * 1024 * 1024, `${-growth} bytes are given back`);
});

function work(): void {
  const made = Array.from({ length: 1_000_000 }, (_, number) => ({ number }));
  assert.equal(made.length, 1_000_000);
}

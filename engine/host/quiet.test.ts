import assert from 'node:assert/strict';
import { test } from 'node:test';

import { systemClock, type Clock } from '../lib/clock.ts';
import { shrinkWhenQuiet } from './quiet.ts';

test('memory of work that is over is given back at the next quiet look', () => {
  let look = (): void => assert.fail('nobody looks');
  const clock: Clock = {
    ...systemClock,
    after: (_milliseconds, callback) => {
      look = callback;
      return { [Symbol.dispose]: () => undefined };
    },
  };
  shrinkWhenQuiet(clock);
  let work: object[] | undefined = Array.from({ length: 1_000_000 }, (_, number) => ({ number }));
  assert.equal(work.length, 1_000_000);
  work = undefined;
  const grown = process.memoryUsage.rss();

  look(); // the work itself was not quiet
  look();

  assert.ok(process.memoryUsage.rss() < grown - 20 * 1024 * 1024);
});

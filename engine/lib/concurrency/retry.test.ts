import assert from 'node:assert/strict';
import { test } from 'node:test';

import { systemClock } from '../clock.ts';
import { retry } from './retry.ts';

class Busy extends Error {}
const settings = {
  clock: systemClock,
  timeoutMs: 60_000,
  delayMs: 1,
  isTransient: (error: unknown) => error instanceof Busy,
};

test('retry: transient errors are retried until an attempt succeeds', async () => {
  let attempts = 0;

  const result = await retry(settings, async () => {
    attempts += 1;
    if (attempts < 4) throw new Busy(String(attempts));
    return await Promise.resolve('done');
  });

  assert.deepEqual([result, attempts], ['done', 4]);
});

test('retry: another error ends it at once', async () => {
  let attempts = 0;

  await assert.rejects(
    retry(settings, async () => await Promise.reject(new Error(`wrong ${(attempts += 1)}`))),
    { message: 'wrong 1' },
  );
});

test('retry: the last error is thrown when the time is over', async () => {
  const left: number[] = [];

  await assert.rejects(
    retry({ ...settings, timeoutMs: 20 }, async (leftMs) => {
      left.push(leftMs);
      return await Promise.reject(new Busy(`busy ${left.length}`));
    }),
    (error: Error) => error.message === `busy ${left.length}`,
  );
  assert.ok(left.length > 1 && left.every((each, index) => index === 0 || each < left[index - 1]!), left.join());
});

test('retry: the pauses double up to their maximum', async () => {
  const pauses: number[] = [];
  const clock = {
    ...systemClock,
    after: (milliseconds: number, work: () => void) => {
      pauses.push(milliseconds);
      return systemClock.after(0, work);
    },
  };

  await retry({ ...settings, clock, delayMs: 10, maxDelayMs: 35 }, async () => {
    if (pauses.length < 5) throw new Busy();
    await Promise.resolve();
  });

  assert.deepEqual(pauses, [10, 20, 35, 35, 35]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { OneAtATime } from './one-at-a-time.ts';

test('OneAtATime: a second call is refused until the first has ended, also badly', async () => {
  const pruning = new OneAtATime('a prune operation is already running');
  const { promise, reject } = Promise.withResolvers<never>();
  const first = pruning.run(async () => await promise);

  await assert.rejects(
    pruning.run(async () => await promise),
    { kind: 'conflict', message: 'a prune operation is already running' },
  );
  reject(new Error('broken'));
  await assert.rejects(first, /broken/);

  assert.equal(await pruning.run(async () => await Promise.resolve(1)), 1);
});

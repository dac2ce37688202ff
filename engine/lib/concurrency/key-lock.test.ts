import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KeyLock } from './key-lock.ts';

test('holders of one key follow each other in the order in which they asked', async () => {
  const locks = new KeyLock();
  const order: string[] = [];
  const work = async (name: string): Promise<void> => {
    using _lock = await locks.hold('a');
    order.push(`${name} in`);
    await new Promise((resolve) => setImmediate(resolve));
    order.push(`${name} out`);
  };

  await Promise.all([work('first'), work('second'), work('third')]);

  assert.deepEqual(order, ['first in', 'first out', 'second in', 'second out', 'third in', 'third out']);
});

test('different keys do not wait for each other', async () => {
  const locks = new KeyLock();
  using _held = await locks.hold('a');

  using other = await locks.hold('b');

  assert.ok(other);
});

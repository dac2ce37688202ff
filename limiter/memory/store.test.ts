import assert from 'node:assert/strict';
import { test } from 'node:test';

import { shownContract } from '../contract/shown.contract.ts';
import { storeContract } from '../contract/store.contract.ts';
import { TestClock } from '../contract/store.fixture.ts';
import { storeModelContract } from '../contract/store.model.contract.ts';
import { RateLimiter } from '../limiter.ts';
import { callerFrom } from '../primary.ts';
import { MemoryStore } from './store.ts';

storeContract('memory', async (now) => new MemoryStore({ now }));
storeModelContract('memory', async (now) => new MemoryStore({ now }));
shownContract('memory', async (now) => new MemoryStore({ now }));

test('callers with expired windows make room for new ones', async () => {
  const clock = new TestClock();
  const store = new MemoryStore({ now: clock.now });
  await using limiter = new RateLimiter({ store });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const visit = async (round: number): Promise<void> => {
    for (let n = 0; n < 5000; n += 1) {
      const address = `10.${round}.${n >> 8}.${n & 255}`;
      using decision = await limiter.admit(callerFrom({ kind: 'anonymous', address }), endpoint);
      assert.ok(decision.allowed);
    }
  };

  for (let round = 0; round < 10; round += 1) {
    await visit(round);
    clock.pass(3700);
  }

  assert.ok(store.size <= 10_000, `${store.size} callers are remembered`);
});

test('a caller with a request under way is not forgotten', async () => {
  const clock = new TestClock();
  const store = new MemoryStore({ now: clock.now });
  await using limiter = new RateLimiter({ store });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const slow = await limiter.admit(callerFrom({ kind: 'user', userId: 'slow' }), endpoint);
  clock.pass(7200);

  for (let n = 0; n < 100; n += 1) {
    const passing = await limiter.admit(callerFrom({ kind: 'user', userId: String(n) }), endpoint);
    assert.ok(passing.allowed);
  }
  const during = await limiter.explainCaller('user:slow');
  assert.ok(slow.allowed);
  slow.end(0);
  const after = await limiter.explainCaller('user:slow');

  assert.deepEqual([during.underWay, after.underWay], [1, 0]);
});

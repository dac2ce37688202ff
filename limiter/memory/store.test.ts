import assert from 'node:assert/strict';
import { test } from 'node:test';

import { shownContract } from '@gantry/testing/limiter/shown.contract.ts';
import { storeContract } from '@gantry/testing/limiter/store.contract.ts';
import { TestClock } from '@gantry/testing/limiter/store.fixture.ts';
import { storeModelContract } from '@gantry/testing/limiter/store.model.contract.ts';

import { RateLimiter } from '../limiter.ts';
import { callerFrom } from '../primary.ts';
import { limitRules } from '../rules.ts';
import type { Caller, Decision } from '../types.ts';
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

const addresses = (count: number): Caller[] =>
  Array.from({ length: count }, (_, n) => callerFrom({ kind: 'anonymous', address: `10.0.${n >> 8}.${n & 255}` }));

/** Uses one more request, which ends at once, and returns the caller's count. */
function use(limiter: RateLimiter, caller: Caller): number {
  const decision = limiter.admit(caller, limiter.endpoint({ name: 'GET /places', points: 0 }));
  assert.ok(!(decision instanceof Promise));
  decision.end(0);
  return decision.used;
}

test('two limiters count the same callers separately', () => {
  const [one, other] = [new RateLimiter(), new RateLimiter()];
  const callers = addresses(40);

  for (const caller of [...callers, ...callers]) use(one, caller);
  for (const caller of callers.toReversed()) assert.equal(use(other, caller), 1);
  for (const caller of callers) assert.equal(use(one, caller), 3);
  for (const caller of callers) assert.equal(use(other, caller), 2);
});

test('a forgotten caller begins anew', () => {
  let nowMs = 1_800_000_000_000;
  const limiter = new RateLimiter({ store: new MemoryStore({ now: () => nowMs }) });
  const [first, ...others] = addresses(500);
  assert.equal(use(limiter, first!), 1);
  assert.equal(use(limiter, first!), 2);

  nowMs += 2 * 3600 * 1000;
  for (const caller of others) assert.equal(use(limiter, caller), 1); // each looks at two old ones

  assert.equal(use(limiter, first!), 1);
  for (const caller of others) assert.equal(use(limiter, caller), 2);
});

test('the time of short requests is charged, and that of a long one to the window in which it ends', () => {
  let nowMs = 1_800_000_000_000;
  const cpu = { totalSeconds: 1, graphqlSeconds: 1, windowSeconds: 60 };
  const limiter = new RateLimiter({ store: new MemoryStore({ now: () => nowMs }), rules: limitRules({ cpu }) });
  const endpoint = limiter.endpoint({ name: 'GET /slow' });
  const [one, other] = ['1', '2'].map((userId) => callerFrom({ kind: 'user', userId }));
  const admit = (caller: Caller): Decision => {
    const decision = limiter.admit(caller, endpoint);
    assert.ok(!(decision instanceof Promise));
    return decision;
  };

  for (let n = 0; n < 250; n += 1) admit(one!).end(0.004);
  const afterShort = admit(one!);
  const long = admit(other!);
  nowMs += 61_000;
  long.end(1);
  const [afterPause, afterLong] = [admit(one!), admit(other!)];

  assert.deepEqual([afterShort.allowed, afterPause.allowed, afterLong.allowed], [false, true, false]);
});

test('each new caller sweeps two idle ones: a long list of them costs no single request more', () => {
  let nowMs = 1_800_000_000_000;
  const store = new MemoryStore({ now: () => nowMs });
  const limiter = new RateLimiter({ store });
  const [first, second, ...idle] = addresses(1002);
  for (const caller of idle) use(limiter, caller);

  nowMs += 2 * 3600 * 1000;
  use(limiter, first!);
  const afterOne = store.size;
  use(limiter, second!);

  assert.deepEqual([afterOne, store.size], [999, 998]);
});

test('a window opened by a clock that went ahead neither refuses nor stays when it is right again', () => {
  let nowMs = 1_800_000_000_000 + 30 * 86_400_000;
  const limiter = new RateLimiter({ store: new MemoryStore({ now: () => nowMs }) });
  const [caller] = addresses(1);
  for (let n = 0; n < 60; n += 1) use(limiter, caller!);

  nowMs -= 30 * 86_400_000;
  const used = [use(limiter, caller!), use(limiter, caller!)];

  assert.deepEqual(used, [1, 2]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RateLimiter } from '../limiter.ts';
import { callerFrom } from '../primary.ts';
import { limitRules } from '../rules.ts';
import type { Caller, Decision } from '../types.ts';
import { MemoryStore } from './store.ts';

const addresses = (count: number): Caller[] =>
  Array.from({ length: count }, (_, n) => callerFrom({ kind: 'anonymous', address: `10.0.${n >> 8}.${n & 255}` }));

/** Uses one more request, which ends at once, and returns the caller's count. */
function use(limiter: RateLimiter, caller: Caller): number {
  const decision = limiter.admit(caller, limiter.endpoint({ name: 'GET /places', points: 0 }));
  assert.ok(!(decision instanceof Promise));
  decision.end(0);
  return decision.used;
}

test('callers that two limiters know have their own counts in each', () => {
  const [one, other] = [new RateLimiter(), new RateLimiter()];
  const callers = addresses(40);

  for (const caller of [...callers, ...callers]) use(one, caller);
  for (const caller of callers.toReversed()) assert.equal(use(other, caller), 1);
  for (const caller of callers) assert.equal(use(one, caller), 3);
  for (const caller of callers) assert.equal(use(other, caller), 2);
});

test('a caller that was forgotten begins anew, though its place is another’s now', () => {
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

test('other objects for the same caller, frozen ones and copies too, have the same count', () => {
  const limiter = new RateLimiter();
  const again = (): Caller => callerFrom({ kind: 'user', userId: '42' });
  const used = again();
  use(limiter, used);
  const frozen = Object.freeze(again());

  const counts = [again(), frozen, { ...used }, structuredClone(used), frozen, used].map((one) => use(limiter, one));

  assert.deepEqual(counts, [2, 3, 4, 5, 6, 7]);
});

test('nothing of a store can be seen in a caller', () => {
  const limiter = new RateLimiter();
  const caller = callerFrom({ kind: 'user', userId: '42' });
  const before = { ...caller };

  use(limiter, caller);

  assert.deepEqual(Reflect.ownKeys(caller), Reflect.ownKeys(before));
  assert.deepEqual(caller, before);
});

test('the time of short requests counts as well, and that of a long one where it ends', () => {
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

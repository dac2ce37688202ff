import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RateLimiter } from '../limiter.ts';
import { callerFrom } from '../primary.ts';
import type { Caller } from '../types.ts';
import { MemoryStore } from './store.ts';

const addresses = (count: number): Caller[] =>
  Array.from({ length: count }, (_, n) => callerFrom({ kind: 'anonymous', address: `10.0.${n >> 8}.${n & 255}` }));

/** What the caller has used after one more request, which ends at once. */
function use(limiter: RateLimiter, caller: Caller): number {
  const decision = limiter.admit(caller, limiter.endpoint({ name: 'GET /places', points: 0 }));
  assert.ok(!(decision instanceof Promise));
  decision.end(0);
  return decision.used;
}

test('callers that two limiters know have their own counts in each', () => {
  const [one, other] = [new RateLimiter(), new RateLimiter()];
  const callers = addresses(40);

  for (const caller of callers) use(one, caller);
  for (const caller of callers.toReversed()) assert.equal(use(other, caller), 1);
  for (const caller of callers) assert.equal(use(one, caller), 2);
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

test('other objects for the same caller, frozen ones too, have the same count', () => {
  const limiter = new RateLimiter();
  const again = (): Caller => callerFrom({ kind: 'user', userId: '42' });
  const plain: Caller = { kind: 'user', key: again().key, limit: 5000, label: 'user ID 42' };

  const used = [again(), Object.freeze(again()), again(), plain, Object.freeze({ ...plain }), again()];

  assert.deepEqual(
    used.map((caller) => use(limiter, caller)),
    [1, 2, 3, 4, 5, 6],
  );
});

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { RateLimiter } from '../limiter.ts';
import { limitRules } from '../rules.ts';
import type { Caller, CallerState } from '../types.ts';
import { connectionTo } from './links/connection.ts';
import type { RedisStoreOptions } from './options.ts';
import { RedisStore } from './store.ts';

const redis = await TestRedis.start();
after(async () => await redis[Symbol.asyncDispose]());

const user: Caller = { kind: 'user', key: 'user:42', limit: 1_000_000, label: 'user ID 42' };
const plenty = { limit: 1_000_000, windowSeconds: 3600 };

async function gateway(prefix: string, concurrent = 100, options: Partial<RedisStoreOptions> = {}) {
  const store = new RedisStore({ url: redis.url, prefix, timeoutMs: 5000, ...options });
  await store.ready();
  const rules = limitRules({ concurrent: { limit: concurrent, retrySeconds: 1 }, restPoints: plenty });
  const limiter = new RateLimiter({ store, rules });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const query = limiter.endpoint({ name: 'POST /graphql', api: 'graphql' });
  return {
    store,
    limiter,
    admit: async (caller = user, graphql = false) => await limiter.admit(caller, graphql ? query : endpoint, 1),
    [Symbol.asyncDispose]: async () => await limiter[Symbol.asyncDispose](),
  };
}

/** Waits until the server counts no request of the user as under way. */
async function untilEnded(store: RedisStore): Promise<CallerState> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('requests are still under way')), 120_000);
  let state = await store.peek(user.key);
  while (state.underWay > 0) state = await Promise.race([store.peek(user.key), tooLate]);
  clearTimeout(timer);
  return state;
}

test('another gateway learns of an end, whether or not the caller comes back', async () => {
  await using first = await gateway('soon:');
  await using second = await gateway('soon:');
  const decisions = await Promise.all([first.admit(), first.admit(), first.admit(user, true)]);

  for (const decision of decisions) decision.end(2);
  const state = await untilEnded(second.store);

  const cpu = state.windows.filter(({ name }) => name.endsWith('cpu')).map(({ name, used }) => [name, used]);
  assert.deepEqual(cpu, [
    ['cpu', 6000],
    ['graphql-cpu', 2000],
  ]);
});

test('nobody is refused for requests that have ended in another gateway', async () => {
  await using first = await gateway('ended:', 10);
  await using second = await gateway('ended:', 10);
  for (const decision of await Promise.all(Array.from({ length: 5 }, () => first.admit()))) decision.end(0);
  await untilEnded(second.store);

  const admitted = await Promise.all(Array.from({ length: 10 }, () => second.admit()));
  const eleventh = await second.admit();

  assert.deepEqual(new Set(admitted.map(({ allowed }) => allowed)), new Set([true]));
  assert.ok(!eleventh.allowed);
  assert.equal(eleventh.refusedBy, 'concurrent');
});

test('a caller that is refused for pending requests in another gateway is told so', async () => {
  await using first = await gateway('under-way:', 10);
  await using second = await gateway('under-way:', 10);
  await Promise.all(Array.from({ length: 10 }, () => first.admit()));

  const decision = await second.admit();

  assert.ok(!decision.allowed);
  assert.equal(decision.refusedBy, 'concurrent');
});

test('a gateway that is closed leaves nothing under way', async () => {
  const first = await gateway('closed:');
  const decision = await first.admit();

  decision.end(0);
  await first[Symbol.asyncDispose]();
  await using second = await gateway('closed:');

  assert.equal((await second.store.peek(user.key)).underWay, 0);
});

test('many requests of few callers at two gateways are neither counted twice nor forgotten', async () => {
  const gateways = await Promise.all([1, 2].map(async () => await gateway('mixed:', 60_000)));
  const callers = Array.from({ length: 23 }, (_, n) => ({ ...user, key: `user:${n}` }));
  const admitted = new Map(callers.map(({ key }) => [key, 0]));
  const until = performance.now() + 1500;
  let seed = 1;
  const random = (below: number): number => {
    seed = (seed * 48_271) % 0x7f_ff_ff_ff;
    return seed % below;
  };
  const client = async (): Promise<void> => {
    while (performance.now() < until || Math.min(...admitted.values()) <= 20) {
      const caller = callers[random(callers.length)]!;
      const decision = await gateways[random(2)]!.admit(caller, random(3) === 0);
      assert.equal(decision.allowed, true);
      admitted.set(caller.key, admitted.get(caller.key)! + 1);
      // Some end at once, some later.
      if (random(4) === 0) await sleep(random(5) === 0 ? random(400) : 1);
      decision.end(0.001);
    }
  };

  await Promise.all(Array.from({ length: 100 }, client));
  for (const each of gateways) await each[Symbol.asyncDispose]();

  await using last = await gateway('mixed:');
  for (const [key, count] of admitted) {
    const { underWay, windows } = await last.store.peek(key);
    const used = new Map(windows.map((window) => [window.name, window.used]));
    const points = (used.get('points GET /') ?? 0) + (used.get('points POST /graphql') ?? 0);
    assert.deepEqual([key, underWay, points, used.get('cpu')], [key, 0, count, count]);
  }
});

test('a caller is kept as long as its longest lease, also when nothing else has changed', async () => {
  const client = connectionTo(redis.url);
  await client.connect();
  await using first = await gateway('kept:', 100, { leaseSeconds: 5000 }); // longer than all windows
  await first.admit();
  const keptMs = await client.pTTL('kept:{user:42}');
  await sleep(1100);

  await first.admit();

  const keptAfterwardsMs = await client.pTTL('kept:{user:42}');
  client.destroy();
  assert.ok(keptAfterwardsMs > keptMs - 500, `${keptMs} ms, then ${keptAfterwardsMs} ms`);
});

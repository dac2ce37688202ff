import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { RateLimiter } from '../limiter.ts';
import { limitRules } from '../rules.ts';
import type { Caller, Decision } from '../types.ts';
import { RedisStore } from './store.ts';

const user: Caller = { kind: 'user', key: 'user:42', limit: 1_000_000, label: 'user ID 42' };
const plenty = { limit: 1_000_000, windowSeconds: 3600 };

async function start(redis: TestRedis, timeoutMs: number) {
  const store = new RedisStore({ url: redis.url, timeoutMs });
  await store.ready();
  const rules = limitRules({ concurrent: { limit: 60_000, retrySeconds: 1 }, restPoints: plenty });
  const limiter = new RateLimiter({ store, rules });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  return {
    admit: async (caller = user): Promise<Decision> => await limiter.admit(caller, endpoint),
    [Symbol.asyncDispose]: async () => await limiter[Symbol.asyncDispose](),
  };
}

/** The whole process stands still, as when the machine has no time for it. */
function standStill(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

test('nobody is refused because this process stood still: answers that are there are read first', async () => {
  await using redis = await TestRedis.start();
  await using gateway = await start(redis, 1000);
  (await gateway.admit()).end(0);

  const decisions: Decision[] = [];
  for (let round = 0; round < 5; round += 1) {
    // Some calls are on their way when it stops, others not yet written.
    const asked = Array.from({ length: 500 }, async () => await gateway.admit());
    for (let turn = 0; turn < round; turn += 1) await nextTurn();
    standStill(1300); // longer than the time limit, which itself is long for a server on a busy machine
    decisions.push(...(await Promise.all(asked)));
  }

  assert.deepEqual(new Set(decisions.map(({ allowed }) => allowed)), new Set([true]));
});

test('a stall of the server that is shorter than the time limit refuses nobody', async () => {
  await using redis = await TestRedis.start();
  await using gateway = await start(redis, 2000);
  let refused = 0;
  const until = new AbortController();
  const client = async (): Promise<void> => {
    while (!until.signal.aborted) {
      const decision = await gateway.admit();
      if (!decision.allowed) refused += 1;
      decision.end(0);
    }
  };

  const clients = Array.from({ length: 50 }, client);
  await sleep(50);
  redis.freeze();
  await sleep(300);
  redis.thaw();
  await sleep(50);
  until.abort();
  await Promise.all(clients);

  assert.equal(refused, 0);
});

test('the first answer after a longer stall opens the store again, and not a pause', async () => {
  await using redis = await TestRedis.start();
  await using gateway = await start(redis, 1000);
  (await gateway.admit()).end(0);
  const milliseconds: number[] = [];
  // A slow moment of the machine may lengthen one; a pause would be in all.
  while (milliseconds.length < 5 && !milliseconds.some((each) => each < 500)) {
    redis.freeze();
    const lost = await gateway.admit();

    const thawed = performance.now();
    redis.thaw();
    let found = await gateway.admit();
    while (!found.allowed) {
      await sleep(5);
      found = await gateway.admit();
    }
    milliseconds.push(performance.now() - thawed);
    found.end(0);

    assert.equal(lost.allowed, false);
  }

  assert.ok(Math.min(...milliseconds) < 500, `after ${milliseconds.join(', ')} ms`);
});

test('remembered refusals end with a loss of the server: callers may be forgiven meanwhile', async () => {
  await using redis = await TestRedis.start();
  await using gateway = await start(redis, 1000);
  const small: Caller = { ...user, key: 'user:7', limit: 1 };
  (await gateway.admit(small)).end(0);
  assert.equal((await gateway.admit(small)).allowed, false);

  await redis.kill();
  await redis.start(); // without its data: every caller is forgiven

  await eventually('it is admitted again', async () => (await gateway.admit(small)).allowed);
});

test('a frozen server costs no processor time', async () => {
  await using redis = await TestRedis.start();
  await using gateway = await start(redis, 60_000);
  const asked: Promise<Decision>[] = [];
  (await gateway.admit()).end(0);
  redis.freeze();
  // Many calls under way, as in a gateway with many clients.
  for (let call = 0; call < 10; call += 1) {
    asked.push(...Array.from({ length: 50 }, async () => await gateway.admit()));
    await nextTurn();
  }
  await sleep(50);

  // The quietest of several moments: the collector of garbage may be at work in one, a loop would be in all.
  const milliseconds: number[] = [];
  for (let moment = 0; moment < 10; moment += 1) {
    const before = process.cpuUsage();
    await sleep(100);
    const { user: userMicros, system } = process.cpuUsage(before);
    milliseconds.push((userMicros + system) / 1000);
  }
  redis.thaw();
  await Promise.all(asked);

  assert.ok(Math.min(...milliseconds) < 15, `${milliseconds.join(', ')} ms of 100`);
});

const LEASE_SECONDS = 3;
const short = { limit: 1_000_000, windowSeconds: 1 };

/** A gateway that may have 100 requests of a caller under way; all of its windows are over after a second. */
async function startBounded(redis: TestRedis) {
  const store = new RedisStore({ url: redis.url, timeoutMs: 1000, leaseSeconds: LEASE_SECONDS });
  await store.ready();
  const categories = { core: { limit: 'caller', windowSeconds: 1 } } as const;
  const rules = limitRules({
    categories,
    restPoints: short,
    cpu: { totalSeconds: 2000, graphqlSeconds: 60, windowSeconds: 1 },
  });
  const limiter = new RateLimiter({ store, rules });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const ask = async (): Promise<Decision> => {
    const decision = await limiter.admit(user, endpoint);
    return !decision.allowed && decision.kind === 'unavailable' ? await sleep(20).then(ask) : decision;
  };
  return {
    /** Sends that many requests, and returns how many pass and go on. */
    admit: async (count: number): Promise<number> => {
      const decisions = await Promise.all(Array.from({ length: count }, ask));
      return decisions.filter(({ allowed }) => allowed).length;
    },
    [Symbol.asyncDispose]: async () => await limiter[Symbol.asyncDispose](),
  };
}

test('requests that go on count after a standstill of their gateway that outlasts its lease', async () => {
  await using redis = await TestRedis.start();
  await using gateway = await startBounded(redis);
  const before = await gateway.admit(150);

  standStill((LEASE_SECONDS + 2) * 1000);
  const after = await gateway.admit(50);

  assert.deepEqual([before, after], [100, 0]);
});

test('requests of all gateways count after a standstill of the server that outlasts their leases', async () => {
  await using redis = await TestRedis.start();
  await using one = await startBounded(redis);
  await using other = await startBounded(redis);
  const before = [await one.admit(60), await other.admit(150)];

  redis.freeze();
  await sleep((LEASE_SECONDS + 6) * 1000); // the connections are given up meanwhile
  redis.thaw();
  const after = await Promise.all([one.admit(50), other.admit(50)]);

  assert.deepEqual(before, [60, 40]);
  assert.deepEqual(after, [0, 0]);
});

test('after a standstill of the server the leases of others last until they can be renewed', async () => {
  await using redis = await TestRedis.start();
  await using one = await startBounded(redis);
  const program = `
    import { RateLimiter } from ${JSON.stringify(new URL('../limiter.ts', import.meta.url).href)};
    import { RedisStore } from ${JSON.stringify(new URL('store.ts', import.meta.url).href)};
    const store = new RedisStore({ url: ${JSON.stringify(redis.url)}, timeoutMs: 20_000, leaseSeconds: ${LEASE_SECONDS} });
    await store.ready();
    const limiter = new RateLimiter({ store });
    const endpoint = limiter.endpoint({ name: 'GET /' });
    for (let n = 0; n < 40; n += 1) await limiter.admit(${JSON.stringify(user)}, endpoint);
    console.log('ready');
    setInterval(() => undefined, 1000);
  `;
  const other = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  using undo = new DisposableStack();
  undo.defer(() => void other.kill('SIGKILL'));
  await once(other.stdout, 'data');
  const before = await one.admit(10);

  redis.freeze();
  other.kill('SIGSTOP'); // it cannot renew yet
  await sleep((LEASE_SECONDS + 2) * 1000);
  redis.thaw();
  const after = await one.admit(100);

  assert.deepEqual([before, after], [10, 50]);
});

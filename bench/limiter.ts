/**
 * The limiter beside rate-limiter-flexible: decisions per second, memory per caller, work of the Redis server.
 *
 * Ours decides six limits at once, and ends each request; the other counts one limit, or three in its union. Both
 * sides take turns and the best of several rounds counts, so that a busy machine disturbs both alike.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { MemoryStore } from '@gantry/limiter/memory/store.ts';
import { callerFrom } from '@gantry/limiter/primary.ts';
import { RedisStore } from '@gantry/limiter/redis/store.ts';
import { TestRedis } from '@gantry/limiter/redis/test-redis.ts';
import { limitRules } from '@gantry/limiter/rules.ts';
import type { Caller, LimitStore } from '@gantry/limiter/types.ts';
import { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible';

const ROUNDS = 5;
const ENOUGH = 1_000_000_000;
const IN_FLIGHT = 32;

/** Limits that are checked and never reached. */
const rules = limitRules({
  concurrent: { limit: 60_000, retrySeconds: 1 },
  restPoints: { limit: ENOUGH, windowSeconds: 60 },
  cpu: { totalSeconds: 2000, graphqlSeconds: 2000, windowSeconds: 60 },
  contentPerMinute: { limit: ENOUGH, windowSeconds: 60 },
  contentPerHour: { limit: ENOUGH, windowSeconds: 3600 },
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

type Contender = { name: string; run: (operations: number) => Promise<void> | void };

function address(n: number): string {
  return `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;
}

function callers(count: number): Caller[] {
  return Array.from({ length: count }, (_, n) => ({
    ...callerFrom({ kind: 'anonymous', address: address(n) }),
    limit: ENOUGH,
  }));
}

/** Six limits, the end of the request included: primary, points, concurrent, CPU, content per minute and per hour. */
function ours(store: LimitStore, count: number): Contender {
  const limiter = new RateLimiter({ store, rules });
  const endpoint = limiter.endpoint({ name: 'POST /issues', content: true });
  const all = callers(count);
  return {
    name: 'gantry, six limits',
    run(operations) {
      for (let n = 0, at = 0; n < operations; n += 1, at = (at + 7919) % count) {
        const decision = limiter.admit(all[at]!, endpoint);
        if (decision instanceof Promise || !decision.allowed) throw new Error('refused');
        decision.end(0.000_001);
      }
    },
  };
}

type Consumer = { consume(key: string): Promise<unknown> };

function theirs(name: string, limiter: Consumer, count: number): Contender {
  const keys = Array.from({ length: count }, (_, n) => address(n));
  return {
    name,
    async run(operations) {
      for (let n = 0, at = 0; n < operations; n += 1, at = (at + 7919) % count) await limiter.consume(keys[at]!);
    },
  };
}

/** Thousands of operations per second of each, the best of all rounds. */
async function race(contenders: readonly Contender[], operations: number): Promise<number[]> {
  const best = contenders.map(() => 0);
  for (const { run } of contenders) await run(operations);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, { run }] of contenders.entries()) {
      collectGarbage();
      const started = performance.now();
      await run(operations);
      best[index] = Math.max(best[index]!, operations / (performance.now() - started));
    }
  }
  return best;
}

function row(what: string, figures: readonly number[], names: readonly string[]): void {
  const [first = 0] = figures;
  const others = figures.slice(1).map((figure, n) => {
    return `${names[n + 1]} ${Math.round(figure).toLocaleString('en')}k/s (ratio ${(first / figure).toFixed(2)})`;
  });
  console.log(`${what}: ${names[0]} ${Math.round(first).toLocaleString('en')}k/s; ${others.join('; ')}`);
}

function used(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

function memoryPerCaller(count: number): void {
  const limiter = new RateLimiter({ rules });
  const endpoint = limiter.endpoint({ name: 'POST /issues', content: true });
  const before = used();
  for (let n = 0; n < count; n += 1) {
    const decision = limiter.admit(callerFrom({ kind: 'anonymous', address: address(n) }), endpoint);
    if (!(decision instanceof Promise)) decision.end(0.001);
  }
  const bytes = (used() - before) / count;
  console.log(
    `memory, ${count.toLocaleString('en')} callers: ${bytes.toFixed(0)} bytes each, its key and five windows included` +
      ` (${(bytes / 5).toFixed(0)} for each window)`,
  );
  if (limiter.counts.admitted !== count) throw new Error('a caller was refused');
}

async function raceInMemory(count: number): Promise<void> {
  const one = new RateLimiterMemory({ keyPrefix: 'one', points: ENOUGH, duration: 3600 });
  const parts = ['a', 'b', 'c'].map(
    (keyPrefix) => new RateLimiterMemory({ keyPrefix, points: ENOUGH, duration: 3600 }),
  );
  const contenders = [
    ours(new MemoryStore(), count),
    theirs('rate-limiter-flexible, one limit', one, count),
    theirs('its union of three', new RateLimiterUnion(...parts), count),
  ];
  const operations = Math.max(300_000, count);
  row(
    `memory, ${count.toLocaleString('en')} callers`,
    await race(contenders, operations),
    contenders.map(({ name }) => name),
  );
}

/** Microseconds of the server's processor since it started. */
async function serverMicros(client: Redis): Promise<number> {
  const text = await client.info('cpu');
  const seconds = [...text.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].reduce(
    (sum, match) => sum + Number(match[1]),
    0,
  );
  return seconds * 1e6;
}

async function raceInRedis(count: number): Promise<void> {
  await using redis = await TestRedis.start();
  const client = new Redis({ path: redis.url });
  const store = new RedisStore({ url: redis.url, timeoutMs: 10_000 });
  await store.ready();
  await using limiter = new RateLimiter({ store, rules });
  const endpoint = limiter.endpoint({ name: 'POST /issues', content: true });
  const all = callers(count);
  const redisLimit = (keyPrefix: string): RateLimiterRedis =>
    new RateLimiterRedis({ storeClient: client, keyPrefix, points: ENOUGH, duration: 3600 });
  const one = redisLimit('one');
  const union = new RateLimiterUnion(...['a', 'b', 'c'].map(redisLimit));
  let at = 0;
  const next = (): Caller => {
    at = (at + 7919) % count;
    return all[at]!;
  };
  const decideOurs = async (): Promise<void> => {
    const decision = await limiter.admit(next(), endpoint);
    if (!decision.allowed) throw new Error('refused');
    decision.end(0.000_01);
  };
  const contenders: Contender[] = [
    { name: 'gantry, six limits', run: inFlight(decideOurs) },
    { name: 'rate-limiter-flexible, one limit', run: inFlight(async () => void (await one.consume(next().key))) },
    { name: 'its union of three', run: inFlight(async () => void (await union.consume(next().key))) },
  ];
  const names = contenders.map(({ name }) => name);
  row(`Redis, ${count.toLocaleString('en')} callers, ${IN_FLIGHT} in flight`, await race(contenders, 32_000), names);
  const work: string[] = [];
  for (const { name, run } of contenders) {
    const before = await serverMicros(client);
    await run(32_000);
    work.push(`${name} ${(((await serverMicros(client)) - before) / 32_000).toFixed(1)} µs`);
  }
  console.log(`  the server's processor for each: ${work.join('; ')}`);
  client.disconnect();
}

function inFlight(decide: () => Promise<void>): Contender['run'] {
  return async (operations) => {
    const worker = async (): Promise<void> => {
      for (let n = 0; n < operations / IN_FLIGHT; n += 1) await decide();
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  };
}

memoryPerCaller(1_000_000);
for (const count of [1, 10_000, 1_000_000]) await raceInMemory(count);
for (const count of [1, 10_000]) await raceInRedis(count);
// rate-limiter-flexible has a timer for each key, which would keep the process for an hour.
process.exit();

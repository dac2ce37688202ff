/**
 * The limiter beside rate-limiter-flexible: decisions per second, memory per caller, work of the Redis server.
 *
 * Ours decides six limits at once and ends each request; the other counts one limit, or three in its union. All sides
 * take turns, and the medians of several rounds are compared, so that a busy machine disturbs all alike.
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

import { median } from './measure.ts';

const ROUNDS = 7;
const ENOUGH = 1_000_000_000;
const IN_FLIGHT = 32;
const REDIS_OPERATIONS = 96_000;

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

/** `atLeast`: how many times as fast as this one ours has to be. */
type Contender = { name: string; atLeast?: number; run: (operations: number) => Promise<void> | void };

/** `only`: `memory` or `redis`. */
export async function main(only?: string): Promise<void> {
  console.log(`${ROUNDS} rounds in turn, medians; ours: six limits and the end of the request\n`);
  if (only !== 'redis') {
    memoryPerCaller(1_000_000);
    for (const count of [1, 10_000, 1_000_000]) await raceInMemory(count);
  }
  if (only !== 'memory') for (const count of [1, 10_000]) await raceInRedis(count);
  // rate-limiter-flexible has a timer for each key, which would keep the process for an hour.
  process.exit();
}

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
    name: 'gantry',
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

function theirs(name: string, atLeast: number, limiter: Consumer, count: number): Contender {
  const keys = Array.from({ length: count }, (_, n) => address(n));
  return {
    name,
    atLeast,
    async run(operations) {
      for (let n = 0, at = 0; n < operations; n += 1, at = (at + 7919) % count) await limiter.consume(keys[at]!);
    },
  };
}

/** Thousands of operations per second of each. The first round fills the stores and warms the code up. */
async function race(what: string, contenders: readonly Contender[], operations: number): Promise<void> {
  const figures = contenders.map((): number[] => []);
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [index, { run }] of contenders.entries()) {
      collectGarbage();
      const started = performance.now();
      await run(operations);
      if (round >= 0) figures[index]!.push(operations / (performance.now() - started));
    }
  }
  const medians = figures.map(median);
  const [mine = 0] = medians;
  console.log(what);
  for (const [index, { name, atLeast }] of contenders.entries()) {
    const perSecond = `${Math.round(medians[index]!).toLocaleString('en')}k/s`.padStart(10);
    const ratio = mine / medians[index]!;
    const verdict = ratio >= (atLeast ?? 0) ? 'met' : 'NOT MET';
    const judged = atLeast === undefined ? '' : `  ratio ${ratio.toFixed(2)} (budget ≥ ${atLeast}: ${verdict})`;
    console.log(`  ${perSecond} ${name}${judged}`);
  }
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
  if (limiter.counts.admitted !== count) throw new Error('a caller was refused');
  const verdict = bytes <= 150 ? 'met' : 'NOT MET';
  console.log(
    `memory of ${count.toLocaleString('en')} idle callers\n` +
      `  ${bytes.toFixed(0)} bytes each, its key and five windows included (budget ≤ 150 for a key and one window: ${verdict})`,
  );
}

async function raceInMemory(count: number): Promise<void> {
  const one = new RateLimiterMemory({ keyPrefix: 'one', points: ENOUGH, duration: 3600 });
  const parts = ['a', 'b', 'c'].map(
    (keyPrefix) => new RateLimiterMemory({ keyPrefix, points: ENOUGH, duration: 3600 }),
  );
  await race(
    `memory, ${count.toLocaleString('en')} callers`,
    [
      ours(new MemoryStore(), count),
      theirs('rate-limiter-flexible, one limit', 1, one, count),
      theirs('its union of three', 5, new RateLimiterUnion(...parts), count),
    ],
    1_000_000,
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
    { name: 'gantry', run: inFlight(decideOurs) },
    {
      name: 'rate-limiter-flexible, one limit',
      atLeast: 1,
      run: inFlight(async () => void (await one.consume(next().key))),
    },
    { name: 'its union of three', atLeast: 1, run: inFlight(async () => void (await union.consume(next().key))) },
  ];
  await race(`Redis, ${count.toLocaleString('en')} callers, ${IN_FLIGHT} in flight`, contenders, REDIS_OPERATIONS);
  const work: string[] = [];
  for (const { name, run } of contenders) {
    const before = await serverMicros(client);
    await run(REDIS_OPERATIONS);
    work.push(`${name} ${(((await serverMicros(client)) - before) / REDIS_OPERATIONS).toFixed(1)} µs`);
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

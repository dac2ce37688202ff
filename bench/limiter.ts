/**
 * The limiter beside rate-limiter-flexible: decisions per second, memory per caller, work of the Redis server.
 *
 * Ours decides six limits at once and ends each request; the other counts one limit, or three in its union. The sides
 * take turns, each with a collected heap and a warm-up of a tenth of the round. A ratio is the median of the rounds'
 * ratios, so that other load affects all alike. In memory the processor time of the process counts, garbage collector
 * threads included; with Redis, elapsed time.
 */
import { loadavg } from 'node:os';

import type { LimitStore } from '@gantry/limiter/limit-store.ts';
import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { MemoryStore } from '@gantry/limiter/memory/store.ts';
import { callerFrom } from '@gantry/limiter/primary.ts';
import { RedisStore } from '@gantry/limiter/redis/store.ts';
import { TestRedis } from '@gantry/limiter/redis/testing/test-redis.ts';
import { limitRules } from '@gantry/limiter/rules.ts';
import type { Caller } from '@gantry/limiter/types.ts';
import { Redis } from 'ioredis';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible';

import { collectGarbage, race, ROUNDS, verdict, type Contender } from './limiter-race.ts';

const ENOUGH = 1_000_000_000;
const IN_FLIGHT = 32;
const REDIS_OPERATIONS = 96_000;

/** Limits that are checked but never reached. */
const rules = limitRules({
  concurrent: { limit: 60_000, retrySeconds: 1 },
  restPoints: { limit: ENOUGH, windowSeconds: 60 },
  cpu: { totalSeconds: 2000, graphqlSeconds: 2000, windowSeconds: 60 },
  contentPerMinute: { limit: ENOUGH, windowSeconds: 60 },
  contentPerHour: { limit: ENOUGH, windowSeconds: 3600 },
});

/** `only`: `memory` or `redis`. */
export async function main(only?: string): Promise<void> {
  const load = loadavg()[0]!.toFixed(1);
  console.log(`${ROUNDS} rounds in turn, medians; ours: six limits and the end of the request; load ${load}\n`);
  if (only !== 'redis') {
    memoryPerCaller(1_000_000);
    for (const count of [1, 10_000, 1_000_000]) await raceInMemory(count);
  }
  if (only !== 'memory') {
    for (const count of [1, 10_000, 100_000]) await raceInRedis(count);
    await raceOfRefusals();
  }
  // rate-limiter-flexible has a timer for each key, which would keep the process for an hour.
  process.exit();
}

function address(n: number): string {
  return inOnePiece(`10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`);
}

/** Flat strings, like those from a socket; V8 keeps concatenated ones as a tree. */
function inOnePiece(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function callers(count: number): Caller[] {
  return Array.from({ length: count }, (_, n) => {
    const { kind, key, label } = callerFrom({ kind: 'anonymous', address: address(n) });
    return { kind, key: inOnePiece(key), limit: ENOUGH, label };
  });
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
  console.log(
    `memory of ${count.toLocaleString('en')} idle callers\n  ${bytes.toFixed(0)} bytes each, ` +
      `its key and five windows included ${verdict('≤ 150 for a key and one window', bytes <= 150)}`,
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
    'processor',
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
  await race(
    `Redis, ${count.toLocaleString('en')} callers, ${IN_FLIGHT} in flight`,
    contenders,
    REDIS_OPERATIONS,
    'wall',
  );
  const work: string[] = [];
  for (const { name, run } of contenders) {
    const before = await serverMicros(client);
    await run(REDIS_OPERATIONS);
    work.push(`${name} ${(((await serverMicros(client)) - before) / REDIS_OPERATIONS).toFixed(1)} µs`);
  }
  console.log(`  the server's processor for each: ${work.join('; ')}`);
  client.disconnect();
}

/** Callers without quota: remembered locally until the reset, so nothing is sent to Redis. */
async function raceOfRefusals(): Promise<void> {
  await using redis = await TestRedis.start();
  const client = new Redis({ path: redis.url });
  const all = callers(1000).map((caller) => ({ ...caller, limit: 1 }));
  const contender = async (name: string, rememberRefusals: boolean): Promise<Contender & AsyncDisposable> => {
    const store = new RedisStore({ url: redis.url, prefix: `${name}:`, timeoutMs: 10_000, rememberRefusals });
    await store.ready();
    const limiter = new RateLimiter({ store, rules });
    const endpoint = limiter.endpoint({ name: 'POST /issues', content: true });
    let at = 0;
    const refuse = async (): Promise<void> => {
      at = (at + 1) % all.length;
      const decision = await limiter.admit(all[at]!, endpoint);
      decision.end(0.000_01);
    };
    return { name, run: inFlight(refuse), [Symbol.asyncDispose]: async () => await limiter[Symbol.asyncDispose]() };
  };
  await using remembering = await contender('refusals known here', true);
  await using asking = await contender('the same, the server asked for each', false);
  const block = { points: 1, duration: 3600, inMemoryBlockOnConsumed: 2 };
  const theirLimit = new RateLimiterRedis({ storeClient: client, keyPrefix: 'block', ...block });
  let at = 0;
  const theirRefusal = async (): Promise<void> => {
    at = (at + 1) % all.length;
    await theirLimit.consume(all[at]!.key).catch(() => undefined); // it rejects with what is left
  };
  const theirs = { name: 'rate-limiter-flexible, inMemoryBlockOnConsumed', run: inFlight(theirRefusal) };
  const sides = [remembering, asking, theirs];
  await race(`refusals with Redis, 1,000 callers, ${IN_FLIGHT} in flight`, sides, REDIS_OPERATIONS, 'wall');

  const before = await commands(client);
  await remembering.run(REDIS_OPERATIONS);
  const sent = (await commands(client)) - before - 1; // the question itself
  console.log(`  commands for ${REDIS_OPERATIONS.toLocaleString('en')} of ours: ${sent} ${verdict('0', sent === 0)}`);
  client.disconnect();
}

/** Commands that the server has received since it started. */
async function commands(client: Redis): Promise<number> {
  return Number(/^total_commands_processed:(\d+)/m.exec(await client.info('stats'))?.[1]);
}

function inFlight(decide: () => Promise<void>): Contender['run'] {
  return async (operations) => {
    const worker = async (): Promise<void> => {
      for (let n = 0; n < operations / IN_FLIGHT; n += 1) await decide();
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  };
}

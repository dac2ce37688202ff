import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { RedisStore } from '@gantry/limiter/redis/store.ts';
import type { Caller } from '@gantry/limiter/types.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible';

import { callers, ENOUGH, rules } from './callers.ts';
import { type Contender, race, verdict } from './race.ts';

const IN_FLIGHT = 32;
const REDIS_OPERATIONS = 96_000;

/** Microseconds of the server's processor since it started. */
async function serverMicros(client: Redis): Promise<number> {
  const text = await client.info('cpu');
  const seconds = [...text.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].reduce(
    (sum, match) => sum + Number(match[1]),
    0,
  );
  return seconds * 1e6;
}

export async function raceInRedis(count: number): Promise<void> {
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
      run: inFlight(async () => void (await one.consume(next().key))),
    },
    { name: 'its union of three', run: inFlight(async () => void (await union.consume(next().key))) },
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
export async function raceOfRefusals(): Promise<void> {
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

/**
 * The limiter beside rate-limiter-flexible: decisions per second, memory per caller, work of the Redis server.
 *
 * Ours decides six limits at once and ends each request; the other counts one limit, or three in its union. The sides
 * take turns, each with a collected heap and a warm-up of a tenth of the round. A ratio is the median of the rounds'
 * ratios, so that other load affects all alike. In memory the processor time of the process counts, garbage collector
 * threads included; with Redis, elapsed time.
 */
import { loadavg } from 'node:os';

import { memoryPerCaller, raceInMemory } from './in-memory.ts';
import { raceInRedis, raceOfRefusals } from './in-redis.ts';
import { ROUNDS } from './race.ts';

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

import type { LimitStore } from '@gantry/limiter/limit-store.ts';
import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { MemoryStore } from '@gantry/limiter/memory/store.ts';
import { callerFrom } from '@gantry/limiter/primary.ts';
import { RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible';

import { address, callers, ENOUGH, rules } from './callers.ts';
import { collectGarbage, type Contender, race, verdict } from './race.ts';

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

function theirs(name: string, limiter: Consumer, count: number, atLeast?: number): Contender {
  const keys = Array.from({ length: count }, (_, n) => address(n));
  return {
    name,
    ...(atLeast === undefined ? {} : { atLeast }),
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

export function memoryPerCaller(count: number): void {
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
      `its key and five windows included ${verdict('≤ 300', bytes <= 300)}`,
  );
}

export async function raceInMemory(count: number): Promise<void> {
  const one = new RateLimiterMemory({ keyPrefix: 'one', points: ENOUGH, duration: 3600 });
  const parts = ['a', 'b', 'c'].map(
    (keyPrefix) => new RateLimiterMemory({ keyPrefix, points: ENOUGH, duration: 3600 }),
  );
  await race(
    `memory, ${count.toLocaleString('en')} callers`,
    [
      ours(new MemoryStore(), count),
      theirs('rate-limiter-flexible, one limit', one, count, 0.9),
      theirs('its union of three', new RateLimiterUnion(...parts), count),
    ],
    1_000_000,
    'processor',
  );
}

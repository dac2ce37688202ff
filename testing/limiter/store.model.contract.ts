import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { LimitStore } from '@gantry/limiter/limit-store.ts';
import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { limitRules, type RuleChanges } from '@gantry/limiter/rules.ts';
import type { Admission, Decision, Endpoint, LimitWindow } from '@gantry/limiter/types.ts';

import { anonymous, Fixture, random, TestClock, user } from './store.fixture.ts';
import { ModelStore } from './store.model.ts';

/** Tests the promises of every store down to the last number, when each answer comes from the counts themselves. */
export function storeModelContract(name: string, open: (now: () => number) => Promise<LimitStore>): void {
  suite(`${name} beside the plain model`, () => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7]) {
      test(`any sequence of requests is decided as by the plain model (${seed})`, async () => {
        const window = (windowSeconds: number, n: number): LimitWindow => {
          const slides = seed === 5 || (seed > 5 && (n + seed) % 2 === 0);
          return { windowSeconds, window: slides ? 'sliding' : 'fixed' };
        };
        const also = [
          { limit: 5, windowSeconds: 9 },
          { limit: 20, windowSeconds: 90 },
        ];
        const rules: RuleChanges = {
          categories: {
            search: { limit: 4, ...window(20, 1) },
            core: { limit: 'caller', ...window(40, 2), ...(seed % 2 === 1 ? { also } : {}) },
          },
          concurrent: { limit: 5, retrySeconds: 1 },
          restPoints: { limit: 12, ...window(30, 3) },
          graphqlPoints: { limit: 15, ...window(7, 4) },
          cpu: { totalSeconds: 9, graphqlSeconds: 6, ...window(8, 5) },
          contentPerMinute: { limit: 4, ...window(6, 6) },
          contentPerHour: { limit: 9, ...window(30, 7) },
          shadow: seed === 4 ? ['content-minute', 'concurrent'] : [],
        };
        const clock = new TestClock();
        const store = await open(clock.now);
        await using limits = new Fixture(clock, store, limitRules(rules));
        const model = new RateLimiter({ store: new ModelStore(clock.now, store.endpoints), rules: limitRules(rules) });

        await replay(limits, model, random(seed), 1500);
      });
    }
  });
}

/** Sends the same random requests to both and compares every answer, down to the reset. */
async function replay(
  limits: Fixture,
  model: RateLimiter,
  next: (below: number) => number,
  steps: number,
): Promise<void> {
  const callers = [
    { ...user, limit: 10 },
    { ...user, limit: 16 },
    { ...anonymous, limit: 6 },
  ];
  const endpoints: Endpoint[] = [
    limits.get,
    limits.create,
    limits.graphql,
    limits.status,
    limits.limiter.endpoint({ name: 'GET /search/issues', category: 'search' }),
    limits.limiter.endpoint({ name: 'POST /invitations', content: { perMinute: 2, perHour: 5 } }),
    limits.limiter.endpoint({ name: 'POST /trial', content: true, shadow: ['points', 'content-minute'] }),
  ];
  const underWay: { real: Admission; modelled: Admission }[] = [];
  for (let step = 0; step < steps; step += 1) {
    const action = next(10);
    if (action === 0) limits.clock.ms += next(9000);
    else if (action === 1) {
      const caller = callers[next(callers.length)]!;
      await Promise.all([limits.limiter.chargeContent(caller, 1), model.chargeContent(caller, 1)]);
    } else if (action <= 4 && underWay.length > 0) {
      const at = next(underWay.length);
      const { real, modelled } = underWay[at]!;
      const cpuSeconds = next(4) / 2;
      const how = next(8);
      const cost = next(4);
      const { points } = real.endpoint;
      for (const admission of [real, modelled]) {
        if (how === 0) admission.chargePoints(points);
        else if (how > 5) admission.setCost(cost);
        else if (how === 1) admission.giveBack();
        else admission.end(cpuSeconds);
      }
      assert.deepEqual(shown(real), shown(modelled), `step ${step}: its cost is ${cost}`);
      if (how > 0 && how <= 5) underWay.splice(at, 1);
      await limits.windows(real.caller.key); // so that the time is charged before the clock moves on
    } else {
      const caller = callers[next(callers.length)]!;
      const endpoint = endpoints[next(endpoints.length)]!;
      const points = endpoint.graphql && next(2) === 1 ? 5 : endpoint.points;
      const real = await limits.admit(caller, endpoint, points);
      const modelled = await model.admit(caller, endpoint, points);
      assert.deepEqual(shown(real), shown(modelled), `step ${step}: ${endpoint.name}`);
      if (real.allowed && modelled.allowed) underWay.push({ real, modelled });
    }
  }
}

function shown(decision: Decision): unknown {
  const { allowed, limit, used, remaining, reset } = decision;
  return decision.allowed
    ? { allowed, limit, used, remaining, reset, shadowed: decision.shadowed }
    : { allowed, limit, used, remaining, reset, by: decision.refusedBy, wait: decision.retryAfterSeconds };
}

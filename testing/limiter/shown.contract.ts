import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { LimitStore } from '@gantry/limiter/limit-store.ts';
import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { headersOf, statusBody } from '@gantry/limiter/present.ts';
import { callerFrom, type CallerFacts } from '@gantry/limiter/primary.ts';
import { limitRules } from '@gantry/limiter/rules.ts';
import {
  type Caller,
  CATEGORIES,
  type Category,
  type CategoryRule,
  type Endpoint,
  type RateStatus,
} from '@gantry/limiter/types.ts';

import { random, TestClock } from './store.fixture.ts';

const enterprise = { id: '7', enterprise: true };

/** Each kind of caller, and two of them with two limits on one count. */
const facts: readonly CallerFacts[] = [
  { kind: 'anonymous', address: '192.0.2.1' },
  { kind: 'user', userId: '42' },
  { kind: 'user', userId: '42', app: { kind: 'platform', owner: enterprise } },
  { kind: 'installation', installationId: '1', repositories: 30, users: 0, hosted: false },
  { kind: 'installation', installationId: '1', repositories: 0, users: 0, hosted: true },
  { kind: 'oauth-client', appId: '1' },
  { kind: 'workflow', repositoryId: '1', enterprise: false },
];

const installation = { least: 8, hosted: 14, above: 20, perRepository: 1, perUser: 1, most: 12 };
const small = { anonymous: 4, user: 6, userThroughEnterpriseApp: 15, installation };
const smaller = {
  oauthClient: 5,
  oauthClientOfEnterprise: 5,
  workflow: 3,
  workflowOfEnterprise: 3,
  ipv6PrefixBits: 64,
};
const callers: readonly Caller[] = facts.map((each) => callerFrom(each, { ...small, ...smaller }));

/** The numbers of every answer agree with each other and with GET /rate_limit, whatever the settings. */
export function shownContract(name: string, open: (now: () => number) => Promise<LimitStore>): void {
  suite(`the numbers shown with ${name}`, () => {
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      test(`limit = used + remaining in headers and status (${seed})`, async () => {
        const clock = new TestClock();
        const next = random(seed);
        await using limiter = new RateLimiter({ store: await open(clock.now), time: clock });
        const endpoints = CATEGORIES.map((category) => limiter.endpoint({ name: `GET /${category}`, category }));
        endpoints.push(limiter.endpoint({ name: 'GET /rate_limit', primary: false }));
        for (let round = 0; round < 6; round += 1) {
          // Half of them begin with the defaults. Rules then change while there are counts; sliding windows stay as they are.
          const slides = seed > 3;
          if (round > 0 || slides) limiter.changeRules(randomRules(next, slides));
          await ask(limiter, clock, endpoints, next);
        }
      });
    }
  });
}

function randomRules(next: (below: number) => number, slides: boolean): ReturnType<typeof limitRules> {
  const categories = CATEGORIES.map((category): [Category, CategoryRule] => {
    const limit = (['caller', 'caller', 'off', 1, 3] as const)[next(5)]!;
    const window = slides ? { windowSeconds: 24, window: 'sliding' as const } : { windowSeconds: 20 + next(20) };
    const also = limit === 'off' || next(2) === 0 ? [] : [{ limit: 1 + next(6), windowSeconds: 5 + next(9) }];
    return [category, { limit, ...window, also, ...(limit !== 'off' && next(3) === 0 ? { anonymousLimit: 2 } : {}) }];
  });
  return limitRules({
    categories: Object.fromEntries(categories),
    restPoints: { limit: 5, windowSeconds: 10 },
    shadow: next(3) === 0 ? ['primary'] : [],
    ...(next(3) === 0 ? { ban: { refusals: 3, withinSeconds: 60, banSeconds: 5 } } : {}),
  });
}

async function ask(
  limiter: RateLimiter,
  clock: TestClock,
  endpoints: readonly Endpoint[],
  next: (below: number) => number,
): Promise<void> {
  for (let step = 0; step < 40; step += 1) {
    clock.ms += next(1500);
    const caller = callers[next(callers.length)]!;
    const endpoint = endpoints[next(endpoints.length)]!;
    const decision = await limiter.admit(caller, endpoint);
    const told = `${caller.key} ${endpoint.name}: ${JSON.stringify(headersOf(decision))}`;
    assertAdds(decision, told);
    const { resources } = statusBody(await limiter.status(caller));
    for (const [category, status] of Object.entries(resources)) assertAdds(status, `${category} ${told}`);
    const rule = limiter.rules.categories[endpoint.category];
    const counted = rule.limit === 'off' ? 'core' : endpoint.category;
    if (decision.allowed || decision.kind !== 'banned') {
      assert.equal(decision.resource, counted, told);
      const { limit, used, remaining } = resources[counted]!;
      assert.deepEqual(
        [decision.limit, decision.used, decision.remaining],
        [limit, used, remaining],
        `GET /rate_limit says something else: ${told}`,
      );
    }
    if (!decision.allowed && decision.refusedBy === 'primary') assert.equal(decision.remaining, 0, told);
    decision.end(0);
  }
}

function assertAdds({ limit, used, remaining }: RateStatus, told: string): void {
  assert.equal(used + remaining, limit, told);
  assert.ok(used >= 0 && remaining >= 0, told);
}

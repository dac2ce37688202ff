import assert from 'node:assert/strict';

import type { LimitStore } from '@gantry/limiter/limit-store.ts';
import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { callerFrom } from '@gantry/limiter/primary.ts';
import {
  type Admission,
  type Caller,
  type Decision,
  type Endpoint,
  type LimitRules,
  LIMITS,
  type Refusal,
} from '@gantry/limiter/types.ts';

/** Time that only moves when a test says so. It begins in the middle of a second. */
export class TestClock {
  ms = 1_800_000_000_300;
  readonly now = (): number => this.ms;

  get seconds(): number {
    return this.ms / 1000;
  }

  /** A test's process may stand still. */
  start(): void {}
  stop(): void {}

  pass(seconds: number): void {
    this.ms += seconds * 1000;
  }

  moveTo(seconds: number): void {
    this.ms = seconds * 1000;
  }
}

export const user: Caller = callerFrom({ kind: 'user', userId: '42' });
export const anonymous: Caller = callerFrom({ kind: 'anonymous', address: '192.0.2.1' });

function failTest(error: unknown): void {
  assert.fail(String(error));
}

/** A limiter on the store under test, and the routes that the tests use. */
export class Fixture implements AsyncDisposable {
  readonly clock: TestClock;
  readonly limiter: RateLimiter;
  readonly get: Endpoint;
  readonly list: Endpoint;
  readonly create: Endpoint;
  readonly graphql: Endpoint;
  readonly status: Endpoint;

  constructor(clock: TestClock, store: LimitStore, rules: LimitRules) {
    this.clock = clock;
    this.limiter = new RateLimiter({ store, rules, reportFailure: failTest, time: clock });
    this.get = this.limiter.endpoint({ name: 'GET /repos/{id}' });
    this.list = this.limiter.endpoint({ name: 'GET /issues' });
    this.create = this.limiter.endpoint({ name: 'POST /issues', content: true });
    this.graphql = this.limiter.endpoint({ name: 'GraphQL', api: 'graphql' });
    this.status = this.limiter.endpoint({ name: 'GET /rate_limit', primary: false });
    assert.equal(LIMITS.length, 7, 'a new limit needs its tests here');
  }

  async admit(caller: Caller, endpoint: Endpoint, points?: number): Promise<Decision> {
    return await this.limiter.admit(caller, endpoint, points);
  }

  /** Sends that many requests, which pass and end; the last one's answer. */
  async use(caller: Caller, endpoint: Endpoint, times: number, points?: number): Promise<Admission> {
    let last: Admission | undefined;
    for (let n = 0; n < times; n += 1) {
      last = admitted(await this.admit(caller, endpoint, points));
      last.end(0);
    }
    assert.ok(last);
    return last;
  }

  async windows(key: string): Promise<Record<string, number>> {
    const { windows } = await this.limiter.explainCaller(key);
    return Object.fromEntries(windows.map(({ name, used }) => [name, used]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.limiter[Symbol.asyncDispose]();
  }
}

export function admitted(decision: Decision): Admission {
  if (!decision.allowed) assert.fail(`refused by ${decision.refusedBy ?? decision.kind}`);
  return decision;
}

export function refused(decision: Decision): Refusal {
  if (decision.allowed) assert.fail('admitted');
  return decision;
}

/** Park and Miller's generator: the same numbers for the same seed everywhere. */
export function random(seed: number): (below: number) => number {
  let state = seed * 7919;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

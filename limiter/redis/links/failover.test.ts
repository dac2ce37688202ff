import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { ask, startCluster, startSentinels } from '@gantry/testing/redis/test-topology.ts';

import { RateLimiter } from '../../limiter.ts';
import { limitRules } from '../../rules.ts';
import type { Caller, Decision, Endpoint } from '../../types.ts';
import type { RedisStoreOptions } from '../options.ts';
import { RedisStore } from '../store.ts';
import { slotOf } from './cluster-link.ts';

const LIMIT = 300;
/** Requests that are asked about at once. What a master has answered and its replica not yet heard of is among them. */
const IN_FLIGHT = 8;
const MAX_MS = 120_000;

const userNamed = (id: string): Caller => ({ kind: 'user', key: `user:${id}`, limit: LIMIT, label: `user ID ${id}` });

/** A gateway, what it was told of its servers, and its counts of one caller's decisions. */
class Subject implements AsyncDisposable {
  readonly limiter: RateLimiter;
  readonly endpoint: Endpoint;
  readonly store: RedisStore;
  readonly errors: unknown[] = [];
  back = 0;

  constructor(options: RedisStoreOptions, onStoreFailure: 'open' | 'closed') {
    this.store = new RedisStore({
      timeoutMs: 2000,
      ...options,
      reportError: (error) => this.errors.push(error),
      reportBack: () => (this.back += 1),
    });
    const rules = limitRules({ restPoints: { limit: 1_000_000, windowSeconds: 3600 } });
    this.limiter = new RateLimiter({ store: this.store, rules, onStoreFailure });
    this.endpoint = this.limiter.endpoint({ name: 'GET /' });
  }

  async admit(caller: Caller): Promise<Decision> {
    const decision = await this.limiter.admit(caller, this.endpoint);
    decision.end(0);
    return decision;
  }

  /** Asks again and again, several at once, until `isOver`; how many passed, and how many could not be decided. */
  async ask(
    caller: Caller,
    isOver: (decision: Decision) => boolean,
  ): Promise<{ admitted: number; unavailable: number }> {
    const found = { admitted: 0, unavailable: 0 };
    const deadline = performance.now() + MAX_MS;
    let over = false;
    const worker = async (): Promise<void> => {
      while (!over) {
        assert.ok(performance.now() < deadline, 'it does not end');
        const decision = await this.admit(caller);
        if (decision.allowed && !decision.unchecked) found.admitted += 1;
        if (!decision.allowed && decision.kind === 'unavailable') {
          found.unavailable += 1;
          await sleep(20);
        }
        over ||= isOver(decision);
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.limiter[Symbol.asyncDispose]();
  }
}

test('with sentinels the counts go on at the replica that takes over, and nobody gets more than the limit', async () => {
  await using servers = await startSentinels();
  const options = {
    url: 'redis://main',
    sentinels: servers.sentinels.map(({ port }) => `redis://127.0.0.1:${port}`),
  };
  await using one = new Subject(options, 'closed');
  await using open = new Subject(options, 'open');
  await Promise.all([one.store.ready(), open.store.ready()]);
  const user = userNamed('42');
  const forgotten: string[] = [];
  open.store.onForgotten((key) => forgotten.push(key));
  const before = await one.ask(user, (decision) => decision.allowed && decision.used >= 100);

  await servers.data[0]!.redis.kill();
  const after = await one.ask(user, (decision) => !decision.allowed && decision.kind === 'primary');
  const elsewhere = await open.ask(user, (decision) => !decision.allowed && decision.kind === 'primary');
  const used = await one.limiter.explainCaller(user.key);
  await one.limiter.forgive(user.key);
  const again = await one.ask(userNamed('7'), (decision) => decision.allowed);

  const admitted = before.admitted + after.admitted + elsewhere.admitted;
  assert.ok(admitted <= LIMIT + IN_FLIGHT, `${admitted} of ${LIMIT} were admitted`);
  assert.ok(admitted > 100);
  assert.equal(used.windows.find(({ name }) => name === 'core')?.used, LIMIT);
  assert.ok(after.unavailable > 0, 'closed: what cannot be decided is refused');
  assert.equal(elsewhere.unavailable, 0, 'open: it is never refused for that');
  assert.ok(again.admitted > 0);
  assert.ok(one.errors.length > 0 && one.back > 0, 'it says that it was away, and that it is back');
  // Heard from the new master, once it is subscribed to.
  for (; forgotten.length === 0; await sleep(100)) await one.limiter.forgive(user.key);
});

test('in a cluster each caller has its server; where one fails the others go on, and a replica takes over', async () => {
  await using cluster = await startCluster();
  const ports = cluster.members.map(({ port }) => port);
  const options = { cluster: [`redis://127.0.0.1:${ports[1]}`, `redis://127.0.0.1:${ports[2]}`] };
  await using one = new Subject(options, 'closed');
  await using other = new Subject(options, 'closed');
  await Promise.all([one.store.ready(), other.store.ready()]);
  const users = Array.from({ length: 60 }, (_, n) => userNamed(String(n)));
  const ofFirst = users.find(({ key }) => slotOf(`gantry:{${key}}`) <= 5460)!;
  const ofOthers = users.find(({ key }) => slotOf(`gantry:{${key}}`) > 5460)!;

  const all = await Promise.all(users.flatMap((user) => [one.admit(user), other.admit(user)]));
  const spread = await Promise.all(ports.slice(0, 3).map(async (port) => Number(await ask(port, 'DBSIZE'))));
  const seen = await Array.fromAsync(one.limiter.callers());
  const before = await one.ask(ofFirst, (decision) => decision.allowed && decision.used >= 100);
  await cluster.members[0]!.redis.kill();
  const meanwhile = await one.ask(ofOthers, (decision) => decision.allowed && decision.used >= 50);
  const after = await one.ask(ofFirst, (decision) => !decision.allowed && decision.kind === 'primary');
  const elsewhere = await other.ask(ofFirst, (decision) => !decision.allowed && decision.kind === 'primary');

  assert.ok(all.every(({ allowed }) => allowed));
  assert.equal(
    spread.reduce((sum, count) => sum + count, 0),
    users.length,
  );
  assert.ok(
    spread.every((count) => count > 0),
    `keys on each server: ${spread.join(' ')}`,
  );
  assert.equal(seen.length, users.length);
  assert.equal(meanwhile.unavailable, 0, 'other callers do not notice');
  const admitted = 2 + before.admitted + after.admitted + elsewhere.admitted;
  assert.ok(admitted <= LIMIT + IN_FLIGHT, `${admitted} of ${LIMIT} were admitted`);
  assert.ok(after.unavailable > 0);
  assert.ok(one.back > 0);
});

test('the slot of a key is that of Redis', () => {
  const slots = ['123456789', 'gantry:{user:42}', 'gantry:{user:{odd}}', 'a{}b', '{'].map(slotOf);

  assert.deepEqual(slots, [12_739, slotOf('user:42'), slotOf('user:{odd'), slotOf('a{}b'), slotOf('{')]);
});

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { pino } from 'pino';

import { systemClock } from '../../lib/clock.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import type { Feed, LeaderKey } from '../state/feed.ts';
import { Election } from './election.ts';

const log = pino({ enabled: false });
const OTHER: LeaderKey = { node: 'other', address: '10.0.0.2:2377', leaseSeconds: 2, revision: 7 };
const NEVER = { [Symbol.dispose]: () => undefined };

/** Keeps leases, but takes its time to say so. */
class SlowEtcd {
  readonly leaseSeconds: number[] = [];
  readonly #answerMs: number;

  constructor(answerMs: number) {
    this.#answerMs = answerMs;
  }

  async grantLease(seconds: number): Promise<string> {
    this.leaseSeconds.push(seconds);
    return await Promise.resolve(String(this.leaseSeconds.length));
  }

  async keepLease(_id: string, milliseconds: number): Promise<number> {
    await sleep(Math.min(milliseconds, this.#answerMs));
    if (milliseconds < this.#answerMs) throw new EtcdError(4, 'no answer');
    return this.leaseSeconds.at(-1)!;
  }

  async store(): Promise<{ succeeded: boolean; revision: number }> {
    return await Promise.resolve({ succeeded: true, revision: this.leaseSeconds.length });
  }

  async endLease(): Promise<void> {
    await Promise.resolve();
  }

  /** The leader of raft: this manager. */
  async call(): Promise<Record<string, unknown>> {
    return await Promise.resolve({ header: { member_id: '1' }, leader: '1' });
  }
}

/** An election in which `leader` is known to lead. */
function election(etcd: SlowEtcd, leader: LeaderKey | undefined, ping: (milliseconds: number) => Promise<boolean>) {
  const feed = { ready: Promise.resolve(), leader, onLeader: () => NEVER } as unknown as Feed;
  return new Election(
    { clock: systemClock, log, etcd: etcd as unknown as Etcd, feed },
    {
      node: 'own',
      address: '10.0.0.1:2377',
      ping: async (_leader, milliseconds) => await ping(milliseconds),
      elected: () => undefined,
      ended: () => undefined,
    },
  );
}

suite('a machine that is slow', { concurrency: true }, () => {
  test('a leader that cannot keep its lease in time takes a longer one, and leads on', async () => {
    const etcd = new SlowEtcd(1200); // a usual lease waits a second for an answer
    await using own = election(etcd, undefined, async () => await Promise.resolve(true));

    await sleep(10_000);

    assert.deepEqual(etcd.leaseSeconds, [2, 4]);
    assert.equal(own.revision, 2);
  });

  test('a leader with a longer lease is waited for longer, and its successor takes one that is as long', async () => {
    const etcd = new SlowEtcd(0);
    const waited: number[] = [];
    await using own = election(etcd, { ...OTHER, leaseSeconds: 8 }, async (milliseconds) => {
      waited.push(milliseconds);
      return await Promise.resolve(false);
    });

    while (own.revision === undefined) await sleep(50);

    assert.deepEqual(waited, [4000, 4000]);
    assert.deepEqual(etcd.leaseSeconds, [8]);
  });

  test('a leader that answers late, as it does always, is not replaced; one that does not answer is', async () => {
    const etcd = new SlowEtcd(0);
    const waited: number[] = [];
    let tookMs = 700;
    await using own = election(etcd, OTHER, async (milliseconds) => {
      waited.push(milliseconds);
      await sleep(Math.min(tookMs, milliseconds));
      return tookMs <= milliseconds;
    });

    await sleep(1000);
    tookMs = 1500;
    await sleep(4000);
    assert.equal(own.revision, undefined);
    assert.equal(waited[0], 1000);

    tookMs = 60_000;
    const until = performance.now() + 60_000;
    while (own.revision === undefined && performance.now() < until) await sleep(50);
    assert.notEqual(own.revision, undefined);
  });
});

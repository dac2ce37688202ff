import assert from 'node:assert/strict';
import { test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import type { KeyValue, Op } from '../etcd/messages.ts';
import { LEADER_KEY, SEQUENCE_KEY } from '../state/keys.ts';
import { Batches, LeadershipLost } from './batches.ts';

/** Values of keys at each revision. */
class History {
  /** The next batch is stored, but its answer is lost. */
  isAnswerLost = false;
  /** A client that waits less gets no answer, though the batch is stored. */
  answersAfterMs = 0;
  /** Runs before the next batch is compared with its fence. */
  before = (): void => undefined;
  readonly #revisions: Map<string, KeyValue>[] = [new Map()];

  get(key: string, milliseconds: number, at = this.#revisions.length - 1): { kv: KeyValue | undefined } {
    this.#answerWithin(milliseconds);
    return { kv: this.#revisions[at]!.get(key) };
  }

  store(
    fence: Record<string, number>,
    ops: readonly Op[],
    milliseconds: number,
  ): { succeeded: boolean; revision: number } {
    const { before } = this;
    this.before = () => undefined;
    before();
    const last = this.#revisions.at(-1)!;
    const succeeded = Object.entries(fence).every(([key, revision]) => (last.get(key)?.revision ?? 0) === revision);
    if (!succeeded) return { succeeded, revision: this.#revisions.length - 1 };
    const revision = this.#put(ops);
    this.#answerWithin(milliseconds);
    if (!this.isAnswerLost) return { succeeded, revision };
    this.isAnswerLost = false;
    throw new EtcdError(14, 'etcdserver: request timed out');
  }

  #answerWithin(milliseconds: number): void {
    if (milliseconds < this.answersAfterMs) throw new EtcdError(4, 'context deadline exceeded');
  }

  /** A manager becomes the leader and stores as many batches; the revision at which it began. */
  lead(lease: string, batches = 0): number {
    const began = this.#put([
      { put: LEADER_KEY, value: lease },
      { put: SEQUENCE_KEY, value: `${lease}/0` },
    ]);
    for (let n = 1; n <= batches; n += 1) this.#put([{ put: SEQUENCE_KEY, value: `${began}/${n}` }]);
    return began;
  }

  #put(ops: readonly Op[]): number {
    const revision = this.#revisions.length;
    const next = new Map(this.#revisions.at(-1));
    for (const op of ops) if ('put' in op) next.set(op.put, { key: op.put, value: op.value, revision });
    this.#revisions.push(next);
    return revision;
  }
}

async function storeOne(etcd: History, batches: Batches): Promise<number> {
  const change = { kind: 'node', id: 'one', record: undefined } as const;
  let at = 0;
  await batches.store([change].values(), (revision) => void (at = revision));
  assert.notEqual(etcd.get(SEQUENCE_KEY, Infinity, at).kv, undefined);
  return at;
}

for (const later of [0, 1, 5]) {
  test(`a batch without an answer counts as stored although two leaders followed, with ${later} batches each`, async () => {
    const etcd = new History();
    const batches = new Batches(etcd as unknown as Etcd, systemClock, {
      leaderRevision: etcd.lead('a'),
      leaseMs: 2000,
    });
    const first = await storeOne(etcd, batches);
    etcd.isAnswerLost = true;
    const follow = (): void => {
      etcd.lead('b', later);
      etcd.lead('c', later);
    };
    etcd.before = () => (etcd.before = follow);

    assert.equal(await storeOne(etcd, batches), first + 1);
  });

  test(`a batch that two leaders with ${later} batches each came before is known to be undone`, async () => {
    const etcd = new History();
    const batches = new Batches(etcd as unknown as Etcd, systemClock, {
      leaderRevision: etcd.lead('a'),
      leaseMs: 2000,
    });
    await storeOne(etcd, batches);
    etcd.before = () => {
      etcd.lead('b', later);
      etcd.lead('c', later);
    };

    await assert.rejects(storeOne(etcd, batches), { message: 'another manager leads the cluster now', isUndone: true });
  });
}

for (const [leaseMs, answersAfterMs] of [
  [2000, 3000],
  [16_000, 6000],
] as const) {
  test(`an etcd that answers after ${answersAfterMs / 1000} s is waited for, with a lease of ${leaseMs / 1000} s`, async () => {
    const etcd = new History();
    const batches = new Batches(etcd as unknown as Etcd, systemClock, { leaderRevision: etcd.lead('a'), leaseMs });
    const first = await storeOne(etcd, batches);
    etcd.answersAfterMs = answersAfterMs;

    assert.equal(await storeOne(etcd, batches), first + 1);
  });
}

for (const [code, kind] of [
  [3, 'failed'],
  [8, 'unavailable'],
] as const) {
  test(`a refusal of etcd with the code ${code} costs the batch, not the leadership`, async () => {
    const etcd = new History();
    const batches = new Batches(etcd as unknown as Etcd, systemClock, {
      leaderRevision: etcd.lead('a'),
      leaseMs: 2000,
    });
    const first = await storeOne(etcd, batches);
    const refuse = (): void => {
      etcd.before = refuse;
      throw new EtcdError(code, 'refused');
    };
    etcd.before = refuse;

    await assert.rejects(storeOne(etcd, batches), (error: unknown) => {
      return error instanceof EngineError && error.kind === kind && !(error instanceof LeadershipLost);
    });

    etcd.before = () => undefined;
    assert.equal(await storeOne(etcd, batches), first + 1);
  });
}

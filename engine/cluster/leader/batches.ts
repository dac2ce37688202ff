import type { Clock } from '../../lib/clock.ts';
import { retry } from '../../lib/concurrency/retry.ts';
import { EngineError } from '../../lib/errors.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import type { KeyValue, Op } from '../etcd/messages.ts';
import { keyOf, LEADER_KEY, SEQUENCE_KEY } from '../state/keys.ts';
import type { ClusterRecord } from '../state/records.ts';
import type { Change } from '../state/view.ts';

const MAX_OPS = 1000;
const MAX_BYTES = 512 * 1024;
const ANSWER_TIMEOUT_MS = 1000;
const MAX_MS = 5000;
const RETRY_DELAY_MS = 50;

/** Codes of refusals: of a request that no repetition mends, and of one for which there is no room. */
const [INVALID, EXHAUSTED] = [3, 8];

/** Encrypts what etcd gets of the cluster's record. */
type Seal = (cluster: ClusterRecord) => ClusterRecord;

/** Another manager leads, or none can: nothing more may be written. */
export class LeadershipLost extends EngineError {
  /** Whether it is sure that nothing of what was to be written has been stored: another leader may do it. */
  readonly isUndone: boolean;

  constructor(reason: string, { isUndone = false } = {}) {
    super('unavailable', reason);
    this.isUndone = isUndone;
  }
}

/** dockerd's message for a cluster without a quorum. */
export const NO_QUORUM =
  "The swarm does not have a leader. It's possible that too few managers are online. Make sure more than half of the managers are online.";

/**
 * Stores what the leader has decided, as long as it leads: each batch only if leadership and the last batch are its own. A
 * leader with a longer lease, as on a slow machine, waits longer for etcd.
 */
export class Batches {
  readonly #etcd: Etcd;
  readonly #clock: Clock;
  readonly #leaderRevision: number;
  readonly #leaseMs: number;
  readonly #seal: Seal;
  #sequenceRevision: number;
  #number = 0;

  /** `leaderRevision`: that of the transaction which made this node the leader, and put the first number of a batch. */
  constructor(
    etcd: Etcd,
    clock: Clock,
    { leaderRevision, leaseMs }: { leaderRevision: number; leaseMs: number },
    seal: Seal = (cluster) => cluster,
  ) {
    this.#seal = seal;
    this.#etcd = etcd;
    this.#clock = clock;
    this.#leaderRevision = leaderRevision;
    this.#leaseMs = leaseMs;
    this.#sequenceRevision = leaderRevision;
  }

  /**
   * Stores changes, in several batches where they are many, and calls `stored` after each. Throws `LeadershipLost`;
   * the last batch may then have been stored or not. Another error refuses the batch, and this manager goes on as the leader.
   */
  async store(
    changes: IteratorObject<Change>,
    stored: (revision: number, changes: readonly Change[]) => void,
  ): Promise<void> {
    let isFirst = true;
    for (const batch of split(changes, this.#seal)) {
      const ops = batch.map(({ op }) => op);
      const revision = await this.#storeOne(ops, isFirst);
      isFirst = false;
      stored(
        revision,
        batch.map(({ change }) => change),
      );
    }
  }

  async #storeOne(ops: readonly Op[], isFirst: boolean): Promise<number> {
    this.#number += 1;
    const own = `${this.#leaderRevision}/${this.#number}`;
    const timeoutMs = Math.max(MAX_MS, this.#leaseMs);
    let answerMs = ANSWER_TIMEOUT_MS;
    const fence = { [LEADER_KEY]: this.#leaderRevision, [SEQUENCE_KEY]: this.#sequenceRevision };
    try {
      return await retry({ clock: this.#clock, timeoutMs, delayMs: RETRY_DELAY_MS, isTransient }, async (leftMs) => {
        const waitMs = Math.min(answerMs, Math.max(leftMs, ANSWER_TIMEOUT_MS));
        answerMs *= 2; // a request is lost when raft's leader changes; a slow machine answers late
        const answer = await this.#etcd.store(fence, [...ops, { put: SEQUENCE_KEY, value: own }], waitMs);
        if (answer.succeeded) return (this.#sequenceRevision = answer.revision);
        return await this.#settle({ own, isFirst, answerMs: waitMs });
      });
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      if (error.code !== INVALID) throw lastOf(error);
      throw new EngineError('failed', 'the cluster cannot store this change', { cause: error });
    }
  }

  /** The fence held a batch back: an earlier attempt at it was stored after all, or this manager leads no more. */
  async #settle({ own, isFirst, answerMs }: { own: string; isFirst: boolean; answerMs: number }): Promise<number> {
    const last = await this.#lastSequence(answerMs);
    if (last?.value === own) return (this.#sequenceRevision = last.revision);
    const isUndone = isFirst && last?.revision === this.#sequenceRevision;
    throw new LeadershipLost('another manager leads the cluster now', { isUndone });
  }

  /** The number of the last batch of this leadership, whatever others followed. Each begins with number 0, then names its revision. */
  async #lastSequence(answerMs: number): Promise<KeyValue | undefined> {
    let { kv } = await this.#etcd.get(SEQUENCE_KEY, answerMs);
    while (kv !== undefined && kv.revision > this.#leaderRevision && !kv.value.startsWith(`${this.#leaderRevision}/`)) {
      const [leadership, number] = kv.value.split('/');
      const began = number === '0' ? kv.revision : Number(leadership);
      ({ kv } = await this.#etcd.get(SEQUENCE_KEY, answerMs, began - 1));
    }
    return kv;
  }
}

/** Without an answer another manager may lead; a member without room still knows who does. */
function lastOf(error: EtcdError): EngineError {
  if (error.code !== EXHAUSTED) return new LeadershipLost(NO_QUORUM);
  return new EngineError('unavailable', 'the cluster has no room to store this change', { cause: error });
}

type Part = Readonly<{ op: Op; change: Change }>;

function* split(changes: IteratorObject<Change>, seal: Seal): Generator<Part[], void> {
  let batch: Part[] = [];
  let bytes = 0;
  for (const change of changes) {
    const op = opOf(change, seal);
    const size = 'put' in op ? op.put.length + op.value.length : op.delete.length;
    if (batch.length > 0 && (batch.length >= MAX_OPS || bytes + size > MAX_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push({ op, change });
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

function opOf(change: Change, seal: Seal): Op {
  const key = keyOf(change.kind, change.id);
  if (change.record === undefined) return { delete: key };
  const record = change.kind === 'cluster' ? seal(change.record) : change.record;
  const { version: _version, ...stored } = record as typeof record & { version?: number };
  return { put: key, value: JSON.stringify(stored) };
}

function isTransient(error: unknown): boolean {
  return error instanceof EtcdError && error.code !== INVALID;
}

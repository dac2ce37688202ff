import type { Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import type { Op } from '../etcd/messages.ts';
import { keyOf, LEADER_KEY, SEQUENCE_KEY } from '../state/keys.ts';
import type { Change } from '../state/view.ts';

const LARGEST_OPS = 1000;
const LARGEST_BYTES = 512 * 1024;
const ANSWER_MS = 1000;
const LONGEST_MS = 5000;
const AGAIN_MS = 50;

/** Another manager leads, or none can: nothing more may be written. */
export class LeadershipLost extends EngineError {
  constructor(reason: string) {
    super('unavailable', reason);
  }
}

/** dockerd's message for a cluster without a quorum. */
export const NO_QUORUM =
  "The swarm does not have a leader. It's possible that too few managers are online. Make sure more than half of the managers are online.";

/** Stores what the leader has decided, as long as it leads: each batch only if leadership and the last batch are its own. */
export class Batches {
  readonly #etcd: Etcd;
  readonly #clock: Clock;
  readonly #leaderRevision: number;
  #sequenceRevision: number;
  #number = 0;

  /** `leaderRevision`: that of the transaction which made this node the leader, and put the first number of a batch. */
  constructor(etcd: Etcd, clock: Clock, leaderRevision: number) {
    this.#etcd = etcd;
    this.#clock = clock;
    this.#leaderRevision = leaderRevision;
    this.#sequenceRevision = leaderRevision;
  }

  /**
   * Stores changes, in several batches where they are many, and calls `stored` after each. Throws `LeadershipLost`;
   * the last batch may then have been stored or not.
   */
  async store(
    changes: IteratorObject<Change>,
    stored: (revision: number, changes: readonly Change[]) => void,
  ): Promise<void> {
    for (const batch of split(changes)) {
      const revision = await this.#storeOne(batch.map(({ op }) => op));
      stored(
        revision,
        batch.map(({ change }) => change),
      );
    }
  }

  async #storeOne(ops: readonly Op[]): Promise<number> {
    this.#number += 1;
    const own = `${this.#leaderRevision}/${this.#number}`;
    const until = this.#clock.now().add({ milliseconds: LONGEST_MS });
    const fence = { [LEADER_KEY]: this.#leaderRevision, [SEQUENCE_KEY]: this.#sequenceRevision };
    for (;;) {
      try {
        const answer = await this.#etcd.store(fence, [...ops, { put: SEQUENCE_KEY, value: own }], ANSWER_MS);
        if (answer.succeeded) return (this.#sequenceRevision = answer.revision);
        return await this.#settle(own);
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        if (Temporal.Instant.compare(this.#clock.now(), until) > 0) throw new LeadershipLost(NO_QUORUM);
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      using _timer = this.#clock.after(AGAIN_MS, resolve);
      await promise;
    }
  }

  /** The fence held a batch back: an earlier attempt at it was stored after all, or another manager leads. */
  async #settle(own: string): Promise<number> {
    const { kv } = await this.#etcd.get(SEQUENCE_KEY, ANSWER_MS);
    if (kv?.value !== own) throw new LeadershipLost('another manager leads the cluster now');
    return (this.#sequenceRevision = kv.revision);
  }
}

type Part = Readonly<{ op: Op; change: Change }>;

function* split(changes: IteratorObject<Change>): Generator<Part[], void> {
  let batch: Part[] = [];
  let bytes = 0;
  for (const change of changes) {
    const op = opOf(change);
    const size = 'put' in op ? op.put.length + op.value.length : op.delete.length;
    if (batch.length > 0 && (batch.length >= LARGEST_OPS || bytes + size > LARGEST_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push({ op, change });
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

function opOf({ kind, id, record }: Change): Op {
  const key = keyOf(kind, id);
  if (record === undefined) return { delete: key };
  const { version: _version, ...stored } = record as typeof record & { version?: number };
  return { put: key, value: JSON.stringify(stored) };
}

import type { Engine } from '../../engine.ts';
import { sleep } from '../../lib/clock.ts';
import type { Etcd } from '../etcd/gateway.ts';
import type { KeyValue, WatchEvent } from '../etcd/messages.ts';
import { LEADER_KEY, recordOfKey } from './keys.ts';
import type { ClusterRecord, Kind, Stored } from './records.ts';
import type { Replica } from './replica.ts';
import type { Change } from './view.ts';

/** The leader with its lease, and the revision of its key. */
export type LeaderKey = Readonly<{ node: string; address: string; leaseSeconds: number; revision: number }>;

type Open = <C extends ClusterRecord>(cluster: C) => C;
type Needs = Pick<Engine, 'clock' | 'log'> &
  Readonly<{
    etcd: Etcd;
    replica: Replica;
    /** Decrypts what etcd has of the cluster's record, as far as this manager can. */
    open: Open;
  }>;

const RETRY_DELAY_MS = 100;

/**
 * Keeps the replica up with etcd: all records of this member's own copy, also without a quorum, then each commit from
 * there on. A watch that ends, such as with the member, is begun anew.
 */
export class Feed implements AsyncDisposable {
  readonly #needs: Needs;
  readonly #ending = new AbortController();
  readonly #leaderListeners = new Set<(leader: LeaderKey | undefined) => void>();
  readonly #done: Promise<void>;
  readonly #first = Promise.withResolvers<void>();
  #leader: LeaderKey | undefined;

  constructor(needs: Needs) {
    this.#needs = needs;
    this.#done = this.#run();
  }

  /** Resolves when the records have been read for the first time. */
  get ready(): Promise<void> {
    return this.#first.promise;
  }

  get leader(): LeaderKey | undefined {
    return this.#leader;
  }

  /** Called with each change of the key, also when no manager leads any more. */
  onLeader(tell: (leader: LeaderKey | undefined) => void): Disposable {
    this.#leaderListeners.add(tell);
    return { [Symbol.dispose]: () => void this.#leaderListeners.delete(tell) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#needs;
    let told = '';
    while (!this.#ending.signal.aborted) {
      try {
        await this.#load();
        told = '';
        await this.#follow();
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        const reason = error instanceof Error ? error.message : String(error);
        if (reason !== told) log.info({ reason }, 'etcd watch interrupted, retrying');
        told = reason;
      }
      await sleep(clock, RETRY_DELAY_MS, this.#ending.signal);
    }
  }

  async #load(): Promise<void> {
    const { etcd, open, replica } = this.#needs;
    const { revision, kvs } = await etcd.all({ serializable: true, signal: this.#ending.signal });
    if (revision < replica.revision) return; // it goes on from there
    replica.reset(
      revision,
      kvs.map((kv) => entryOf(kv, open)).filter((entry) => entry !== undefined),
    );
    this.#lead(kvs.find(({ key }) => key === LEADER_KEY));
    this.#first.resolve();
  }

  async #follow(): Promise<void> {
    const { etcd, replica } = this.#needs;
    for await (const events of etcd.watch(replica.revision + 1, this.#ending.signal)) {
      for (const [at, group] of Map.groupBy(events, (event) => event.revision)) this.#commit(at, group);
    }
  }

  #commit(revision: number, events: readonly WatchEvent[]): void {
    const changes = events.map((event) => changeOf(event, this.#needs.open)).filter((change) => change !== undefined);
    this.#needs.replica.apply({ revision, changes });
    const leader = events.find(({ key }) => key === LEADER_KEY);
    if (leader !== undefined) this.#lead(leader.isDeleted ? undefined : leader);
  }

  #lead(kv: KeyValue | undefined): void {
    if (kv?.revision === this.#leader?.revision) return;
    this.#leader = kv === undefined ? undefined : readLeader(kv);
    for (const tell of this.#leaderListeners) tell(this.#leader);
  }
}

function readLeader({ value, revision }: KeyValue): LeaderKey {
  type Value = { node: string; address: string; leaseSeconds?: number }; // earlier versions do not tell their lease
  const { node, address, leaseSeconds = 0 } = JSON.parse(value) as Value;
  return { node, address, leaseSeconds, revision };
}

function entryOf({ key, value, revision }: KeyValue, open: Open): readonly [Kind, string, Stored<Kind>] | undefined {
  const named = recordOfKey(key);
  if (named === undefined) return undefined;
  return [named.kind, named.id, { ...(parse(named.kind, value, open) as Stored<Kind>), version: revision }];
}

function changeOf({ key, value, isDeleted }: WatchEvent, open: Open): Change | undefined {
  const named = recordOfKey(key);
  if (named === undefined) return undefined;
  return { ...named, record: isDeleted ? undefined : parse(named.kind, value, open) } as Change;
}

function parse(kind: Kind, value: string, open: Open): unknown {
  const record: unknown = JSON.parse(value);
  return kind === 'cluster' ? open(record as ClusterRecord) : record;
}

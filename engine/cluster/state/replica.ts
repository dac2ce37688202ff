import type { Clock } from '../../lib/clock.ts';
import { keyOf } from './keys.ts';
import type { Kind, Stored } from './records.ts';
import { TaskIndex } from './task-index.ts';
import type { Change, View } from './view.ts';

type Waiter = Readonly<{ revision: number; resolve: (reached: boolean) => void }>;

/** One commit of etcd: all changes of a revision. */
export type Commit = Readonly<{ revision: number; changes: readonly Change[] }>;

/**
 * All records in memory as they were at one revision. The leader applies its own batches, and the watch of etcd brings
 * those of others: what is not newer than the replica is left out.
 */
export class Replica implements View {
  readonly #clock: Clock;
  readonly #records = new Map<Kind, Map<string, Stored<Kind>>>();
  readonly #tasks = new TaskIndex();
  readonly #listeners = new Set<(commit: Commit) => void>();
  #waiters: Waiter[] = [];
  #revision = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get revision(): number {
    return this.#revision;
  }

  get<K extends Kind>(kind: K, id: string): Stored<K> | undefined {
    return this.#records.get(kind)?.get(id) as Stored<K> | undefined;
  }

  all<K extends Kind>(kind: K): IteratorObject<Stored<K>> {
    return (this.#records.get(kind) ?? new Map<string, Stored<K>>()).values() as IteratorObject<Stored<K>>;
  }

  tasksOf(service: string): IteratorObject<Stored<'task'>> {
    return this.#tasksWith(this.#tasks.ofService(service));
  }

  tasksOn(node: string): IteratorObject<Stored<'task'>> {
    return this.#tasksWith(this.#tasks.onNode(node));
  }

  /** Makes the changes of a revision visible, unless they are; then tells the listeners. */
  apply(commit: Commit): void {
    if (commit.revision <= this.#revision) return;
    for (const change of commit.changes) this.#set(change, commit.revision);
    this.reach(commit.revision);
    for (const tell of this.#listeners) tell(commit);
  }

  /**
   * Replaces everything by what etcd has at a revision, if that is not older: what was read before a batch of this leader
   * was stored must not take it back. `records` have the versions that they have there.
   */
  reset(revision: number, records: Iterable<readonly [kind: Kind, id: string, record: Stored<Kind>]>): void {
    if (revision < this.#revision) return;
    const gone = new Map<string, Change>();
    for (const [kind, byId] of this.#records) {
      for (const id of byId.keys()) gone.set(keyOf(kind, id), { kind, id, record: undefined });
    }
    const changes: Change[] = [];
    for (const [kind, id, record] of records) {
      gone.delete(keyOf(kind, id));
      if (this.get(kind, id)?.version === record.version) continue;
      const change = { kind, id, record } as Change;
      this.#set(change, record.version);
      changes.push(change);
    }
    for (const change of gone.values()) {
      this.#set(change, revision);
      changes.push(change);
    }
    this.reach(revision);
    for (const tell of this.#listeners) tell({ revision, changes });
  }

  /** Replaces the cluster's record by what this manager has decrypted of it since. */
  open(cluster: Stored<'cluster'>): void {
    if (this.get('cluster', '')?.version !== cluster.version) return;
    const change: Change = { kind: 'cluster', id: '', record: cluster };
    this.#set(change, cluster.version);
    for (const tell of this.#listeners) tell({ revision: this.#revision, changes: [change] });
  }

  /** Notes that there are no other changes up to a revision. */
  reach(revision: number): void {
    if (revision <= this.#revision) return;
    this.#revision = revision;
    const reached = this.#waiters.filter((waiter) => waiter.revision <= revision);
    if (reached.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => waiter.revision > revision);
    for (const { resolve } of reached) resolve(true);
  }

  /** Whether the replica has a revision within this time. */
  async reached(revision: number, milliseconds: number): Promise<boolean> {
    if (revision <= this.#revision) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter = { revision, resolve };
    this.#waiters.push(waiter);
    using _late = this.#clock.after(milliseconds, () => resolve(false));
    const reached = await promise;
    if (!reached) this.#waiters = this.#waiters.filter((other) => other !== waiter);
    return reached;
  }

  /** Called after each commit, with the records as they are then. */
  onCommit(tell: (commit: Commit) => void): Disposable {
    this.#listeners.add(tell);
    return { [Symbol.dispose]: () => void this.#listeners.delete(tell) };
  }

  #set(change: Change, version: number): void {
    const { kind, id } = change;
    let byId = this.#records.get(kind);
    if (byId === undefined) this.#records.set(kind, (byId = new Map()));
    if (change.kind === 'task') this.#tasks.replace(this.get('task', id), change.record);
    if (change.record === undefined) byId.delete(id);
    else byId.set(id, { ...change.record, version });
  }

  #tasksWith(ids: ReadonlySet<string>): IteratorObject<Stored<'task'>> {
    return ids.values().map((id) => this.get('task', id)!);
  }
}

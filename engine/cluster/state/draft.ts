import { EngineError } from '../../lib/errors.ts';
import type { Kind, Records, Stored } from './records.ts';
import { TaskIndex } from './task-index.ts';
import type { Change, View } from './view.ts';

/**
 * Changes over committed records, or over another draft, that are seen through it at once and stored together. Only the
 * leader makes drafts, one at a time, so nothing under them changes meanwhile.
 */
export class Draft implements View {
  readonly #base: View;
  readonly #changes = new Map<Kind, Map<string, Change>>();
  readonly #touched: [kind: Kind, id: string][] = [];
  readonly #tasks = new TaskIndex();

  constructor(base: View) {
    this.#base = base;
  }

  /** The last change of each record, in the order in which they were first touched. */
  get changes(): IteratorObject<Change> {
    return this.#touched.values().map(([kind, id]) => this.#changes.get(kind)!.get(id)!);
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** The number of records that it changes. */
  get size(): number {
    return this.#touched.length;
  }

  get<K extends Kind>(kind: K, id: string): Stored<K> | undefined {
    const change = this.#changes.get(kind)?.get(id);
    return change === undefined ? this.#base.get(kind, id) : draftRecord<K>(change);
  }

  *all<K extends Kind>(kind: K): Generator<Stored<K>, undefined> {
    const changed = this.#changes.get(kind);
    for (const record of this.#base.all(kind)) if (changed?.has(idOf(kind, record)) !== true) yield record;
    for (const change of changed?.values() ?? []) {
      const record = draftRecord<K>(change);
      if (record !== undefined) yield record;
    }
  }

  tasksOf(service: string): IteratorObject<Stored<'task'>> {
    return this.#tasksIn(this.#base.tasksOf(service), this.#tasks.ofService(service));
  }

  tasksOn(node: string): IteratorObject<Stored<'task'>> {
    return this.#tasksIn(this.#base.tasksOn(node), this.#tasks.onNode(node));
  }

  /** Adds a record or replaces it; a `version` that it has is not stored. */
  put<K extends Kind>(kind: K, record: Records[K]): void {
    this.#set({ kind, id: idOf(kind, record), record } as Change);
  }

  delete(kind: Kind, id: string): void {
    this.#set({ kind, id, record: undefined });
  }

  /** Runs `work` in a draft of its own, which is discarded when it throws. */
  attempt<T>(work: (draft: Draft) => T): T {
    const inner = new Draft(this);
    const result = work(inner);
    for (const change of inner.changes) this.#set(change);
    return result;
  }

  /** A draft with the same changes so far. */
  copy(): Draft {
    const copy = new Draft(this.#base);
    for (const change of this.changes) copy.#set(change);
    return copy;
  }

  #set(change: Change): void {
    const { kind, id } = change;
    let changed = this.#changes.get(kind);
    if (changed === undefined) this.#changes.set(kind, (changed = new Map()));
    const before = changed.get(id);
    if (before === undefined) this.#touched.push([kind, id]);
    if (kind === 'task') this.#tasks.replace(before?.kind === 'task' ? before.record : undefined, change.record);
    changed.set(id, change);
  }

  *#tasksIn(base: IteratorObject<Stored<'task'>>, changed: ReadonlySet<string>): Generator<Stored<'task'>, undefined> {
    const own = this.#changes.get('task');
    for (const task of base) if (own?.has(task.id) !== true) yield task;
    for (const id of changed) yield this.get('task', id)!;
  }
}

/** Throws the refusal of an update that was made of an older record. */
export function refuseOldVersion(record: { version: number }, version: number): void {
  if (record.version !== version) {
    throw new EngineError('unavailable', 'rpc error: code = Unknown desc = update out of sequence');
  }
}

const ID_OF: { readonly [K in Kind]: (record: Records[K]) => string } = {
  cluster: () => '',
  node: ({ id }) => id,
  service: ({ id }) => id,
  template: ({ service, hash }) => `${service}/${hash}`,
  task: ({ id }) => id,
  network: ({ id }) => id,
  restart: ({ service, place }) => `${service}/${place}`,
  attachment: ({ id }) => id,
  secret: ({ id }) => id,
  config: ({ id }) => id,
};

/** The id of a record in the store. */
export function idOf<K extends Kind>(kind: K, record: Records[K]): string {
  return ID_OF[kind](record);
}

/** Its version is 0, so that a second update of the version before it is refused too. */
function draftRecord<K extends Kind>({ record }: Change): Stored<K> | undefined {
  return record === undefined ? undefined : ({ ...record, version: 0 } as unknown as Stored<K>);
}

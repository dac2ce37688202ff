import { checkFields } from '../db/bad-records.ts';
import type { Database } from '../db/database.ts';
import { EngineError } from '../lib/errors.ts';
import type { NetworkingConfig } from './schema.ts';
import type { ContainerConfig } from './settings/container-config-schema.ts';
import type { HostConfig } from './settings/host-config-schema.ts';
import { checkStatus, type ContainerState } from './state.ts';

/** Something of the host that is mounted into the container. */
export type MountPoint = Readonly<{
  type: 'bind' | 'volume' | 'tmpfs';
  /** Of the volume. */
  name?: string;
  /** On the host; of a volume its folder. Empty for tmpfs. */
  source: string;
  destination: string;
  /** The client's own options, as it wrote them. */
  mode: string;
  writable: boolean;
  propagation: string;
  /** Whether an empty volume first gets what the image has at the destination. */
  copyUp: boolean;
  /** Made for this container alone, without a name of the user's. */
  anonymous: boolean;
  /** Of a tmpfs, in the form of a mount. */
  options?: string;
  /** False: without what is mounted below the source. */
  recursive?: false;
  /** The folder is not made when it is missing. */
  mustExist?: boolean;
}>;

export type Container = Readonly<{
  id: string;
  /** Without the leading slash. */
  name: string;
  createdAt: Temporal.Instant;
  imageId: string;
  /** As the client wrote it. */
  imageName: string;
  config: ContainerConfig;
  hostConfig: HostConfig;
  networkingConfig: NetworkingConfig;
  path: string;
  args: readonly string[];
  state: ContainerState;
  /** Why the last start failed. */
  error: string;
  oomKilled: boolean;
  /** Restarts by the restart policy since the last start by a user. */
  restartCount: number;
  /** A user asked for its end: the restart policy leaves it alone. */
  stoppedByUser: boolean;
  mounts: readonly MountPoint[];
  /** Empty before the first start, and with the log driver none. */
  logPath: string;
}>;

const migrations = [
  `CREATE TABLE containers (
     id TEXT PRIMARY KEY,
     name TEXT NOT NULL UNIQUE,
     record TEXT NOT NULL
   ) STRICT`,
];

/** The containers' records: all of them in memory, each change committed before it is seen. */
export class ContainerStore {
  readonly #db: Database;
  readonly #byId = new Map<string, Container>();
  readonly #idByName = new Map<string, string>();
  readonly #put;
  readonly #remove;

  constructor(db: Database) {
    this.#db = db;
    db.migrate('containers', migrations);
    this.#put = db.sql.prepare(
      `INSERT INTO containers VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, record = excluded.record`,
    );
    this.#remove = db.sql.prepare('DELETE FROM containers WHERE id = ?');
    const rows = db.sql.prepare('SELECT id, record FROM containers ORDER BY rowid').iterate();
    const containers = db.badRecords.decodeAll('containers', 'id', rows, ({ record }) => parseRecord(String(record)));
    for (const container of containers) this.#remember(container);
  }

  /** The container a client means: by full id, by name with or without its slash, by unique prefix of the id. */
  find(ref: string): Container {
    const name = ref.startsWith('/') ? ref.slice(1) : ref;
    const exact = this.#byId.get(ref) ?? this.named(name);
    if (exact !== undefined) return exact;
    const matches = ref === '' ? [] : [...this.#byId.keys()].filter((id) => id.startsWith(ref)).slice(0, 2);
    if (matches.length > 1) throw new EngineError('invalid', `Multiple IDs found with provided prefix: ${ref}`);
    const found = this.#byId.get(matches[0] ?? '');
    if (found === undefined) throw new EngineError('notFound', `No such container: ${ref}`);
    return found;
  }

  get(id: string): Container | undefined {
    return this.#byId.get(id);
  }

  /** The container with exactly this name. */
  named(name: string): Container | undefined {
    const id = this.#idByName.get(name);
    return id === undefined ? undefined : this.#byId.get(id);
  }

  /** In the order of their creation. */
  all(): readonly Container[] {
    return [...this.#byId.values()];
  }

  /** Of all containers, also of those whose records cannot be read: nothing of theirs is anybody else's. */
  ids(): ReadonlySet<string> {
    return new Set([...this.#byId.keys(), ...this.#db.badRecords.idsIn('containers')]);
  }

  insert(container: Container): void {
    if (this.#byId.has(container.id)) throw new Error(`container ${container.id} exists`);
    this.#save(container);
  }

  /** Replaces a record by what `work` makes of it, and commits before it returns. `work` may refuse by throwing. */
  change(id: string, work: (current: Container) => Container): Container {
    const current = this.#byId.get(id);
    if (current === undefined) throw new EngineError('notFound', `No such container: ${id}`);
    const changed = work(current);
    if (changed !== current) this.#save(changed);
    return changed;
  }

  delete(id: string): void {
    this.#remove.run(id);
    const container = this.#byId.get(id);
    if (container === undefined) return;
    this.#db.onRollback(() => this.#remember(container));
    this.#forget(container);
  }

  /** Several changes that are committed together or not at all; whoever reads in between is a bug of the caller. */
  together<T>(work: () => T): T {
    return this.#db.transaction(work);
  }

  #save(container: Container): void {
    const holder = this.named(container.name);
    if (holder !== undefined && holder.id !== container.id) throw nameTaken(container.name, holder.id);
    this.#put.run(container.id, container.name, JSON.stringify(container));
    const before = this.#byId.get(container.id);
    this.#db.onRollback(() => (before === undefined ? this.#forget(container) : this.#remember(before)));
    this.#remember(container);
  }

  #forget({ id, name }: Container): void {
    this.#byId.delete(id);
    this.#idByName.delete(name);
  }

  /** Keeps its place in the order. */
  #remember(container: Container): void {
    const before = this.#byId.get(container.id);
    if (before !== undefined && before.name !== container.name) this.#idByName.delete(before.name);
    this.#byId.set(container.id, container);
    this.#idByName.set(container.name, container.id);
  }
}

/** The refusal of a name that another container has, in the words that clients look for. */
export function nameTaken(name: string, holderId: string): EngineError {
  return new EngineError(
    'conflict',
    `Conflict. The container name "/${name}" is already in use by container "${holderId}". ` +
      'You have to remove (or rename) that container to be able to reuse that name.',
  );
}

const instants = new Set(['createdAt', 'startedAt', 'finishedAt']);

const FIELDS = { id: 'string', name: 'string', createdAt: 'object', config: 'object', hostConfig: 'object' } as const;

function parseRecord(text: string): Container {
  const record = JSON.parse(text, (key, value: unknown) =>
    instants.has(key) && typeof value === 'string' ? Temporal.Instant.from(value) : value,
  ) as Container;
  checkFields(record, { ...FIELDS, state: 'object', mounts: 'object' });
  checkStatus(record.state);
  return record;
}

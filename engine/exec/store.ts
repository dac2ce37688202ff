import { checkFields } from '../db/bad-records.ts';
import type { Database } from '../db/database.ts';
import { EngineError } from '../lib/errors.ts';

/** The states of an exec. The one start that an exec may have claims `starting`. */
export type ExecState =
  | Readonly<{ status: 'created' | 'starting' }>
  | Readonly<{ status: 'running'; pid: number }>
  | Readonly<{ status: 'ended'; exitCode: number; endedAt: Temporal.Instant }>;

export type Exec = Readonly<{
  id: string;
  containerId: string;
  command: readonly string[];
  user: string;
  tty: boolean;
  privileged: boolean;
  openStdin: boolean;
  openStdout: boolean;
  openStderr: boolean;
  detachKeys: string;
  env: readonly string[];
  workingDir: string;
  /** The terminal's size, if it was set before the start. */
  size?: Readonly<{ width: number; height: number }>;
  state: ExecState;
}>;

/** How long the exit code can be inspected. */
const KEPT_MINUTES = 5;

const migrations = [
  `CREATE TABLE execs (
     id TEXT PRIMARY KEY,
     container TEXT NOT NULL,
     record TEXT NOT NULL
   ) STRICT`,
];

/** The records of execs. They are removed with the run of their container. */
export class ExecStore {
  readonly #db: Database;
  readonly #byId = new Map<string, Exec>();
  readonly #put;
  readonly #delete;

  constructor(db: Database) {
    this.#db = db;
    db.migrate('execs', migrations);
    this.#put = db.sql.prepare(
      'INSERT INTO execs VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET record = excluded.record',
    );
    this.#delete = db.sql.prepare('DELETE FROM execs WHERE id = ?');
    const rows = db.sql.prepare('SELECT id, record FROM execs').iterate();
    for (const exec of db.badRecords.decodeAll('execs', 'id', rows, ({ record }) => parseRecord(String(record)))) {
      this.#byId.set(exec.id, exec);
    }
  }

  /** By id or a unique prefix. Throws `notFound`. */
  find(ref: string): Exec {
    const exact = this.#byId.get(ref);
    if (exact !== undefined) return exact;
    const matches = ref === '' ? [] : [...this.#byId.values()].filter(({ id }) => id.startsWith(ref));
    if (matches.length === 1) return matches[0]!;
    throw new EngineError('notFound', `No such exec instance: ${ref}`);
  }

  get(id: string): Exec | undefined {
    return this.#byId.get(id);
  }

  all(): readonly Exec[] {
    return [...this.#byId.values()];
  }

  /** The ids of execs that run or may still be started, for an inspect of the container. */
  runningIn(containerId: string): string[] {
    return this.all()
      .filter((exec) => exec.containerId === containerId && exec.state.status !== 'ended')
      .map(({ id }) => id);
  }

  /** Removes execs that ended long ago, so that the table holds only those of some minutes. */
  insert(exec: Exec, now: Temporal.Instant): void {
    const kept = now.subtract({ minutes: KEPT_MINUTES });
    for (const { id, state } of this.all()) {
      if (state.status === 'ended' && Temporal.Instant.compare(state.endedAt, kept) < 0) this.delete(id);
    }
    this.#save(exec);
  }

  change(id: string, work: (current: Exec) => Exec): Exec {
    const changed = work(this.find(id));
    this.#save(changed);
    return changed;
  }

  delete(id: string): void {
    this.#delete.run(id);
    this.#remember(id, undefined);
  }

  /** The container is removed. */
  deleteOf(containerId: string): void {
    for (const exec of this.all()) if (exec.containerId === containerId) this.delete(exec.id);
  }

  #save(exec: Exec): void {
    this.#put.run(exec.id, exec.containerId, JSON.stringify(exec));
    this.#remember(exec.id, exec);
  }

  #remember(id: string, exec: Exec | undefined): void {
    const before = this.#byId.get(id);
    this.#set(id, exec);
    this.#db.onRollback(() => this.#set(id, before));
  }

  #set(id: string, exec: Exec | undefined): void {
    if (exec === undefined) this.#byId.delete(id);
    else this.#byId.set(id, exec);
  }
}

function parseRecord(text: string): Exec {
  const record = JSON.parse(text, (key, value: unknown) =>
    key === 'endedAt' && typeof value === 'string' ? Temporal.Instant.from(value) : value,
  ) as Exec;
  checkFields(record, { id: 'string', containerId: 'string', command: 'object', state: 'object' });
  return record;
}

import type { Database } from '../db/database.ts';
import { EngineError } from '../lib/errors.ts';

/** What an exec is doing. `starting` is claimed by the one start that an exec may have. */
export type ExecState =
  | Readonly<{ status: 'created' | 'starting' }>
  | Readonly<{ status: 'running'; pid: number }>
  | Readonly<{ status: 'ended'; exitCode: number }>;

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
  state: ExecState;
}>;

const migrations = [
  `CREATE TABLE execs (
     id TEXT PRIMARY KEY,
     container TEXT NOT NULL,
     record TEXT NOT NULL
   ) STRICT`,
];

/** The processes that were started, or are to be started, in running containers. They go with their container's run. */
export class ExecStore {
  readonly #byId = new Map<string, Exec>();
  readonly #put;
  readonly #delete;

  constructor(db: Database) {
    db.migrate('execs', migrations);
    this.#put = db.sql.prepare(
      'INSERT INTO execs VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET record = excluded.record',
    );
    this.#delete = db.sql.prepare('DELETE FROM execs WHERE id = ?');
    for (const row of db.sql.prepare('SELECT record FROM execs').iterate()) {
      const exec = JSON.parse(String(row.record)) as Exec;
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

  runningIn(containerId: string): string[] {
    return this.all()
      .filter((exec) => exec.containerId === containerId && exec.state.status === 'running')
      .map(({ id }) => id);
  }

  insert(exec: Exec): void {
    this.#save(exec);
  }

  change(id: string, work: (current: Exec) => Exec): Exec {
    const changed = work(this.find(id));
    this.#save(changed);
    return changed;
  }

  delete(id: string): void {
    this.#delete.run(id);
    this.#byId.delete(id);
  }

  #save(exec: Exec): void {
    this.#put.run(exec.id, exec.containerId, JSON.stringify(exec));
    this.#byId.set(exec.id, exec);
  }
}

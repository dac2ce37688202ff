import { Type, type Static } from 'typebox';

import type { Database } from '../db/database.ts';
import { Instant } from '../db/decode.ts';
import { createTable } from '../db/migration-sql.ts';
import { RecordTable } from '../db/table.ts';
import { EngineError } from '../lib/errors.ts';

const strings = Type.Immutable(Type.Array(Type.String()));

/** The states of an exec. It is started once, by the claim `starting`. */
const ExecState = Type.Union([
  Type.Object({ status: Type.Union([Type.Literal('created'), Type.Literal('starting')]) }),
  Type.Object({ status: Type.Literal('running'), pid: Type.Integer() }),
  Type.Object({ status: Type.Literal('ended'), exitCode: Type.Integer(), endedAt: Instant }),
]);

const Exec = Type.Object({
  id: Type.String(),
  containerId: Type.String(),
  command: strings,
  user: Type.String(),
  tty: Type.Boolean(),
  privileged: Type.Boolean(),
  openStdin: Type.Boolean(),
  openStdout: Type.Boolean(),
  openStderr: Type.Boolean(),
  detachKeys: Type.String(),
  env: strings,
  workingDir: Type.String(),
  /** The terminal's size, if it was set before the start. */
  size: Type.Optional(Type.Object({ width: Type.Integer(), height: Type.Integer() })),
  state: ExecState,
});
export type Exec = Readonly<Static<typeof Exec>>;

/** How long the exit code can be inspected. */
const RETENTION_MINUTES = 5;

const migrations = [
  `CREATE TABLE execs (
     id TEXT PRIMARY KEY,
     container TEXT NOT NULL,
     record TEXT NOT NULL
   ) STRICT`,
  `ALTER TABLE execs RENAME TO old_execs;
   ${createTable('execs')}
   INSERT INTO execs (id, version, record) SELECT id, 1, record FROM old_execs ORDER BY rowid;
   DROP TABLE old_execs;`,
];

/** The records of execs. They are removed with the run of their container. */
export class ExecStore {
  readonly #table;

  constructor(db: Database) {
    db.migrate('execs', migrations);
    this.#table = new RecordTable(db, {
      name: 'execs',
      schema: Exec,
      id: ({ id }) => id,
      groups: { container: ({ containerId }) => containerId },
    });
  }

  /** By id or a unique prefix. Throws `notFound`. */
  find(ref: string): Exec {
    const exact = this.get(ref);
    if (exact !== undefined) return exact;
    const matches = this.#table.idsFrom(ref);
    const found = matches.length === 1 ? this.get(matches[0]!) : undefined;
    if (found !== undefined) return found;
    throw new EngineError('notFound', `No such exec instance: ${ref}`);
  }

  get(id: string): Exec | undefined {
    return this.#table.get(id);
  }

  all(): readonly Exec[] {
    return this.#table.all();
  }

  /** The ids whose records cannot be read: their processes and folders stay. */
  idsSetAside(): readonly string[] {
    return this.#table.idsSetAside();
  }

  /** The ids of execs that run or may still be started, for an inspect of the container. */
  runningIn(containerId: string): string[] {
    return this.#table
      .in('container', containerId)
      .filter(({ state }) => state.status !== 'ended')
      .map(({ id }) => id);
  }

  /** Removes execs that ended long ago, so that the table holds only those of some minutes. */
  insert(exec: Exec, now: Temporal.Instant): void {
    const kept = now.subtract({ minutes: RETENTION_MINUTES });
    for (const { id, state } of this.all()) {
      if (state.status === 'ended' && Temporal.Instant.compare(state.endedAt, kept) < 0) this.delete(id);
    }
    this.#table.insert(exec);
  }

  change(id: string, work: (current: Exec) => Exec): Exec {
    return this.#table.change(this.find(id).id, work);
  }

  delete(id: string): void {
    this.#table.delete(id);
  }

  /** The run of the container is over: execs that were not started can no longer be. */
  deleteUnstartedOf(containerId: string): void {
    for (const { id, state } of this.#table.in('container', containerId)) {
      if (state.status === 'created') this.delete(id);
    }
  }

  /** The container is removed. */
  deleteOf(containerId: string): void {
    for (const { id } of this.#table.in('container', containerId)) this.delete(id);
  }
}

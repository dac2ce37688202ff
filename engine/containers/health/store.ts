import { Type, type Static } from 'typebox';

import type { Database } from '../../db/database.ts';
import { Instant } from '../../db/decode.ts';
import { createTable } from '../../db/migration-sql.ts';
import { RecordTable } from '../../db/table.ts';

const HealthStatus = Type.Union([Type.Literal('starting'), Type.Literal('healthy'), Type.Literal('unhealthy')]);
export type HealthStatus = Static<typeof HealthStatus>;

const CheckResult = Type.Object({
  start: Instant,
  end: Instant,
  /** 0 is healthy; -1 is a check that could not be run, or took too long. */
  exitCode: Type.Integer(),
  output: Type.String(),
});
export type CheckResult = Readonly<Static<typeof CheckResult>>;

const Health = Type.Object({
  /** Id of the container. */
  id: Type.String(),
  status: HealthStatus,
  /** Failures in a row. */
  failingStreak: Type.Integer(),
  /** The last results, oldest first, also of runs before. */
  log: Type.Immutable(Type.Array(CheckResult)),
});
export type Health = Readonly<Static<typeof Health>>;

/** The health of the containers that have been checked since their creation. */
export class HealthStore {
  readonly #table;

  constructor(db: Database) {
    db.migrate('health', [createTable('health')]);
    this.#table = new RecordTable(db, { name: 'health', schema: Health, id: ({ id }) => id });
  }

  get(id: string): Health | undefined {
    return this.#table.get(id);
  }

  put(health: Health): void {
    this.#table.put(health);
  }

  delete(id: string): void {
    this.#table.delete(id);
  }

  /** At the daemon's start. */
  keepOnly(containers: ReadonlySet<string>): void {
    for (const id of [...this.#table.ids()]) if (!containers.has(id)) this.delete(id);
  }
}

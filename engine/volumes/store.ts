import { Type, type Static } from 'typebox';

import type { Database } from '../db/database.ts';
import { Instant, type Upgrade } from '../db/decode.ts';
import { createTable, instantOf, jsonOf, recordOf } from '../db/migration-sql.ts';
import { RecordTable } from '../db/table.ts';
import { EngineError } from '../lib/errors.ts';

const Volume = Type.Object({
  name: Type.String(),
  /** By name. */
  driver: Type.String(),
  createdAt: Instant,
  labels: Type.Record(Type.String(), Type.String()),
  /** Options of the driver, as the client gave them. */
  options: Type.Optional(Type.Record(Type.String(), Type.String())),
  /**
   * Anonymous, and still of its first container: without that container it is left over from an interrupted creation.
   */
  anonymous: Type.Boolean(),
});
export type Volume = Readonly<Static<typeof Volume>>;

const migrations = [
  `CREATE TABLE volumes (
     name TEXT PRIMARY KEY,
     created_ns TEXT NOT NULL,
     labels TEXT NOT NULL,
     anonymous INTEGER NOT NULL
   ) STRICT`,
  `ALTER TABLE volumes RENAME TO old_volumes;
   ${createTable('volumes')}
   INSERT INTO volumes (id, version, record)
     SELECT name, 1, ${recordOf({
       name: 'name',
       createdAt: instantOf('created_ns'),
       labels: jsonOf('labels'),
       anonymous: "json(iif(anonymous = 1, 'true', 'false'))",
     })}
     FROM old_volumes ORDER BY rowid;
   DROP TABLE old_volumes;`,
];

/** Version 2: volumes name their driver. Before, there was only one. */
const withDriver: Upgrade = (old) => ({ ...old, driver: 'local' });

/** The volumes' records, all of them in memory; their drivers have their files. */
export class VolumeStore {
  readonly #table;

  constructor(db: Database) {
    db.migrate('volumes', migrations);
    this.#table = new RecordTable(db, {
      name: 'volumes',
      schema: Volume,
      id: ({ name }) => name,
      upgrades: [withDriver],
    });
  }

  /** Throws `notFound`. */
  find(name: string): Volume {
    const found = this.#table.get(name);
    if (found === undefined) throw noSuchVolume(name);
    return found;
  }

  get(name: string): Volume | undefined {
    return this.#table.get(name);
  }

  all(): readonly Volume[] {
    return this.#table.all();
  }

  /** Whether a volume has this name, also one whose record cannot be read. */
  isKnown(name: string): boolean {
    return this.#table.has(name) || this.#table.idsSetAside().includes(name);
  }

  /** Throws `conflict` if a record that cannot be read has this name. */
  insert(volume: Volume): void {
    this.#table.insert(volume);
  }

  /** Its container is removed, and the volume stays. */
  keep(name: string): void {
    if (this.get(name)?.anonymous !== true) return;
    this.#table.change(name, (volume) => ({ ...volume, anonymous: false }));
  }

  delete(name: string): void {
    this.#table.delete(name);
  }
}

export function noSuchVolume(name: string): EngineError {
  return new EngineError('notFound', `get ${name}: no such volume`);
}

import { join } from 'node:path';

import { Type, type Static } from 'typebox';

import type { Database } from '../db/database.ts';
import { Instant } from '../db/decode.ts';
import { createTable, instantOf, jsonOf, recordOf } from '../db/migration-sql.ts';
import { RecordTable } from '../db/table.ts';
import { EngineError } from '../lib/errors.ts';
import { Trash } from '../trees/trash.ts';

const Volume = Type.Object({
  name: Type.String(),
  createdAt: Instant,
  labels: Type.Record(Type.String(), Type.String()),
  /**
   * Made for one container without a name of the user's, and not left behind by its removal: without a container it is
   * what a creation that was cut off has left.
   */
  anonymous: Type.Boolean(),
});
export type Volume = Readonly<Static<typeof Volume>>;

type FailureLog = { warn(details: object, message: string): void };

/** No volume has such a name. */
export const TRASH = '.trash';

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

/** The volumes' records, all of them in memory; their files lie below `<data-root>/volumes`. */
export class VolumeStore implements AsyncDisposable {
  readonly directory: string;
  readonly #table;
  readonly #trash: Trash;

  constructor(db: Database, dataRoot: string, log: FailureLog) {
    this.directory = join(dataRoot, 'volumes');
    this.#trash = new Trash(join(this.directory, TRASH), (error, path) =>
      log.warn({ err: error, path }, 'a removed volume is still there; the next start tries again'),
    );
    db.migrate('volumes', migrations);
    this.#table = new RecordTable(db, { name: 'volumes', schema: Volume, id: ({ name }) => name });
  }

  /** Throws `notFound`. */
  find(name: string): Volume {
    const found = this.#table.get(name);
    if (found === undefined) throw new EngineError('notFound', `get ${name}: no such volume`);
    return found;
  }

  get(name: string): Volume | undefined {
    return this.#table.get(name);
  }

  all(): readonly Volume[] {
    return this.#table.all();
  }

  /** Whether there is a volume with this name, also one whose record cannot be read. */
  isKnown(name: string): boolean {
    return this.#table.has(name) || this.#table.idsSetAside().includes(name);
  }

  /** Where the volume's files are. */
  mountpoint(name: string): string {
    return join(this.directory, name, '_data');
  }

  /** Throws `conflict` where one has the name whose record cannot be read. */
  insert(volume: Volume): void {
    this.#table.insert(volume);
  }

  /** Its container goes and the volume stays. */
  keep(name: string): void {
    if (this.get(name)?.anonymous !== true) return;
    this.#table.change(name, (volume) => ({ ...volume, anonymous: false }));
  }

  /** Takes a folder below `directory` away; its files disappear in the background. `forget`: see `Trash.take`. */
  discard(folder: string, forget?: () => void): void {
    this.#trash.take(join(this.directory, folder), forget);
  }

  delete(name: string): void {
    this.#table.delete(name);
  }

  /** Stops removals in the background; the next start continues them. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#trash[Symbol.asyncDispose]();
  }
}

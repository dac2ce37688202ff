import { join } from 'node:path';

import type { Database } from '../db/database.ts';
import { EngineError } from '../lib/errors.ts';
import { Trash } from '../trees/trash.ts';

export type Volume = Readonly<{
  name: string;
  createdAt: Temporal.Instant;
  labels: Readonly<Record<string, string>>;
  /**
   * Made for one container without a name of the user's, and not left behind by its removal: without a container it is
   * what a creation that was cut off has left.
   */
  anonymous: boolean;
}>;

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
];

/** The volumes' records, all of them in memory; their files lie below `<data-root>/volumes`. */
export class VolumeStore implements AsyncDisposable {
  readonly directory: string;
  readonly #db: Database;
  readonly #byName = new Map<string, Volume>();
  readonly #insert;
  readonly #delete;
  readonly #keep;
  readonly #trash: Trash;

  constructor(db: Database, dataRoot: string, log: FailureLog) {
    this.#db = db;
    this.directory = join(dataRoot, 'volumes');
    this.#trash = new Trash(join(this.directory, TRASH), (error, path) =>
      log.warn({ err: error, path }, 'a removed volume is still there; the next start tries again'),
    );
    db.migrate('volumes', migrations);
    this.#insert = db.sql.prepare('INSERT INTO volumes VALUES (?, ?, ?, ?)');
    this.#keep = db.sql.prepare('UPDATE volumes SET anonymous = 0 WHERE name = ?');
    this.#delete = db.sql.prepare('DELETE FROM volumes WHERE name = ?');
    const rows = db.sql.prepare('SELECT * FROM volumes ORDER BY rowid').iterate();
    const volumes = db.badRecords.decodeAll('volumes', 'name', rows, (row) => ({
      name: String(row.name),
      createdAt: new Temporal.Instant(BigInt(String(row.created_ns))),
      labels: JSON.parse(String(row.labels)) as Record<string, string>,
      anonymous: row.anonymous === 1,
    }));
    for (const volume of volumes) this.#byName.set(volume.name, volume);
  }

  /** Throws `notFound`. */
  find(name: string): Volume {
    const found = this.#byName.get(name);
    if (found === undefined) throw new EngineError('notFound', `get ${name}: no such volume`);
    return found;
  }

  get(name: string): Volume | undefined {
    return this.#byName.get(name);
  }

  all(): readonly Volume[] {
    return [...this.#byName.values()];
  }

  /** Where the volume's files are. */
  mountpoint(name: string): string {
    return join(this.directory, name, '_data');
  }

  insert(volume: Volume): void {
    const { name, createdAt, labels, anonymous } = volume;
    this.#insert.run(name, String(createdAt.epochNanoseconds), JSON.stringify(labels), anonymous ? 1 : 0);
    this.#byName.set(name, volume);
  }

  /** Its container goes and the volume stays. */
  keep(name: string): void {
    const volume = this.#byName.get(name);
    if (volume === undefined || !volume.anonymous) return;
    this.#keep.run(name);
    this.#byName.set(name, { ...volume, anonymous: false });
    this.#db.onRollback(() => this.#byName.set(name, volume));
  }

  /** Takes a folder below `directory` away; its files disappear in the background. `forget`: see `Trash.take`. */
  discard(folder: string, forget?: () => void): void {
    this.#trash.take(join(this.directory, folder), forget);
  }

  delete(name: string): void {
    this.#delete.run(name);
    this.#byName.delete(name);
  }

  /** Stops removals in the background; the next start continues them. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#trash[Symbol.asyncDispose]();
  }
}

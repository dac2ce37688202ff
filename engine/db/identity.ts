import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { isFull, type Database } from './database.ts';

/** The database's id, how often it was opened and closed, and for a backup the time of the copy. */
export type Identity = Readonly<{ id: string; generation: number; backupAt: string | undefined }>;

/** The mark beside the database that identifies it. */
type Marker = Readonly<{ id: string; generation: number; isOpen: boolean }>;

type FailureLog = { warn(details: object, message: string): void };

const MARKER = 'database.json';

const migrations = [
  `CREATE TABLE identity (
     id TEXT NOT NULL,
     generation INTEGER NOT NULL,
     backup_at TEXT
   ) STRICT`,
];

/**
 * Counts how often the database is opened and closed, in it and beside it: the next start compares the two, and notices
 * an older or a foreign database.
 */
export class DatabaseInUse implements Disposable {
  readonly #db: Database;
  readonly #dataRoot: string;
  readonly #log: FailureLog;

  constructor(db: Database, dataRoot: string, log: FailureLog) {
    this.#db = db;
    this.#dataRoot = dataRoot;
    this.#log = log;
    db.migrate('identity', migrations);
    this.#count(true);
  }

  /** To be called before the database is closed, when nothing writes to it any more. */
  [Symbol.dispose](): void {
    this.#count(false);
  }

  /** A full disk is not an error here: an older mark beside the database is accepted. */
  #count(isOpen: boolean): void {
    const { sql } = this.#db;
    try {
      const before = this.#db.transaction(() => {
        if (readIdentity(this.#db.sql) === undefined) {
          sql.prepare('INSERT INTO identity VALUES (?, 0, NULL)').run(newId());
        }
        const marked = readMarker(this.#dataRoot)?.generation ?? 0;
        sql.prepare('UPDATE identity SET backup_at = NULL, generation = max(generation, ?) + 1').run(marked);
        return readIdentity(sql)!;
      });
      // Synced before the mark, so that after a power cut the database does not look like an older one.
      sql.exec('PRAGMA wal_checkpoint(PASSIVE)');
      writeMarker(this.#dataRoot, { id: before.id, generation: before.generation, isOpen });
    } catch (error) {
      if (!isFull(error) && !hasCode(error, 'ENOSPC')) throw error;
      this.#log.warn({ err: error }, 'the disk is full: the database was not marked as opened or closed');
    }
  }
}

/** The identity of an open database; undefined if it has none yet. */
export function readIdentity(sql: Pick<Database['sql'], 'prepare'>): Identity | undefined {
  const table = sql.prepare("SELECT name FROM sqlite_master WHERE name = 'identity'").get();
  const row = table === undefined ? undefined : sql.prepare('SELECT * FROM identity').get();
  if (row === undefined) return undefined;
  const backupAt = row.backup_at === null ? undefined : String(row.backup_at);
  return { id: String(row.id), generation: Number(row.generation), backupAt };
}

/** Undefined if it is missing or unreadable: a power cut may leave half of it. */
export function readMarker(dataRoot: string): Marker | undefined {
  const path = join(dataRoot, MARKER);
  if (!existsSync(path)) return undefined;
  try {
    const { id, generation, isOpen } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Marker>;
    if (typeof id !== 'string' || typeof generation !== 'number') return undefined;
    return { id, generation, isOpen: isOpen === true };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function writeMarker(dataRoot: string, marker: Marker): void {
  const path = join(dataRoot, MARKER);
  writeFileSync(`${path}.new`, `${JSON.stringify(marker)}\n`);
  renameSync(`${path}.new`, path);
}

import { DatabaseSync } from 'node:sqlite';

import { BadRecords } from './bad-records.ts';

const PAGE_BYTES = 4096;
/** 1 MB. */
const LOG_PAGES = 256;
const FREE_PAGES = 128;
const SQLITE_FULL = 13;

/**
 * The daemon's state: one SQLite database in WAL mode.
 *
 * `synchronous=NORMAL`: what was committed survives the death of the daemon; a power cut may lose the last commits,
 * but never leaves the database damaged.
 *
 * It keeps space for what has to be written when the disk is full, the end of a container first of all: free pages in
 * the database, and a log that begins anew before it has outgrown its file.
 */
export class Database implements Disposable {
  readonly sql: DatabaseSync;
  readonly badRecords = new BadRecords();
  #depth = 0;
  readonly #undo: (() => void)[] = [];
  #afterwards: (() => void)[] = [];

  constructor(path: string) {
    this.sql = new DatabaseSync(path);
    this.sql.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA foreign_keys = ON;
      PRAGMA busy_timeout = 5000;
      PRAGMA wal_autocheckpoint = ${LOG_PAGES};
      CREATE TABLE IF NOT EXISTS schema_version (domain TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
    `);
    this.#keepSpace();
  }

  /** On a disk that is full already there is none to keep. */
  #keepSpace(): void {
    const { freelist_count: free } = this.sql.prepare('PRAGMA freelist_count').get() ?? {};
    if (Number(free) >= FREE_PAGES) return;
    try {
      this.transaction(() => {
        this.sql.exec(
          `CREATE TABLE space (bytes BLOB); INSERT INTO space VALUES (zeroblob(${LOG_PAGES * PAGE_BYTES}))`,
        );
        this.sql.exec('DROP TABLE space');
      });
      this.sql.exec('PRAGMA wal_checkpoint(RESTART)');
    } catch (error) {
      if (!isFull(error)) throw error;
    }
  }

  /** Brings a domain's tables to the newest form: `steps[n]` leads from version n to n + 1 and never changes again. */
  migrate(domain: string, steps: readonly string[]): void {
    this.transaction(() => {
      const row = this.sql.prepare('SELECT version FROM schema_version WHERE domain = ?').get(domain);
      const version = Number(row?.version ?? 0);
      if (version > steps.length) {
        throw new Error(`the state of ${domain} has version ${version}, this daemon knows ${steps.length}: too old`);
      }
      for (const step of steps.slice(version)) this.sql.exec(step);
      this.sql
        .prepare('INSERT INTO schema_version VALUES (?, ?) ON CONFLICT DO UPDATE SET version = excluded.version')
        .run(domain, steps.length);
    });
  }

  /** Runs `work`, which is synchronous, and commits, or rolls back when it throws. Inner calls join the outer one. */
  transaction<T>(work: () => T): T {
    if (this.#depth > 0) return work();
    this.sql.exec('BEGIN IMMEDIATE');
    this.#depth += 1;
    let result: T;
    try {
      result = work();
      this.sql.exec('COMMIT');
    } catch (error) {
      this.#afterwards = [];
      for (const undo of this.#undo.toReversed()) undo();
      // Of some errors, such as a full disk, SQLite has rolled back by itself.
      if (this.sql.isTransaction) this.sql.exec('ROLLBACK');
      throw error;
    } finally {
      this.#depth -= 1;
      this.#undo.length = 0;
    }
    const afterwards = this.#afterwards;
    this.#afterwards = [];
    for (const step of afterwards) step();
    return result;
  }

  /** Whether what is written now can still be rolled back. */
  get inTransaction(): boolean {
    return this.#depth > 0;
  }

  /** For what is kept in memory as well: called when the present transaction is rolled back. */
  onRollback(undo: () => void): void {
    if (this.#depth > 0) this.#undo.push(undo);
  }

  /**
   * For what must not be seen, or cannot be taken back, before it is stored: called after the commit of the present
   * transaction; at once where there is none. It must not throw: what was committed has succeeded.
   */
  afterCommit(step: () => void): void {
    if (this.#depth > 0) this.#afterwards.push(step);
    else step();
  }

  [Symbol.dispose](): void {
    this.sql.close();
  }
}

/** Whether an error says that the disk is full. */
export function isFull(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_FULL;
}

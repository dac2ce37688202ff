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
 * `synchronous=NORMAL`: commits survive the death of the daemon; a power cut may lose the last ones, but never damages
 * the database.
 *
 * It reserves space for changes on a full disk, above all the end of a container: free pages in the database, and a log
 * that restarts before it outgrows its file.
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

  /** A full disk has no space to reserve. */
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

  /** Migrates a domain's tables: `steps[n]` leads from version n to n + 1 and never changes again. */
  migrate(domain: string, steps: readonly string[]): void {
    this.transaction(() => {
      const row = this.sql.prepare('SELECT version FROM schema_version WHERE domain = ?').get(domain);
      const version = Number(row?.version ?? 0);
      if (version > steps.length) {
        throw new Error(
          `a newer daemon wrote the database: its table ${domain} has version ${version}, and this daemon knows ${steps.length}. ` +
            'Start a daemon at least as new, or restore a backup that this one or an older one wrote',
        );
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
      // After some errors, such as a full disk, SQLite has already rolled back.
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

  /** Whether a transaction is open. */
  get inTransaction(): boolean {
    return this.#depth > 0;
  }

  /** Calls back when the current transaction is rolled back, to revert changes in memory. */
  onRollback(undo: () => void): void {
    if (this.#depth > 0) this.#undo.push(undo);
  }

  /**
   * Calls back after the commit of the current transaction, or at once without one: for effects that must not be
   * visible before, or cannot be undone. The callback must not throw, because the commit has succeeded.
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

import { DatabaseSync, type StatementSync } from 'node:sqlite';

import type { Endpoints } from '../endpoints.ts';
import type { LimitStore } from '../limit-store.ts';
import { MemoryStore, type StoredCaller } from '../memory/store.ts';
import type { Ask, CallerState, LimitRules, Verdict } from '../types.ts';

/** Written by this version; another one is refused, since its counts could mean something else. */
const SCHEMA_VERSION = 1;

/** How often what is over is removed from the file. */
const PURGE_SECONDS = 60;

/** The file cannot be used: another process has it, it is no database, or it cannot be opened. */
export class StoreFileError extends Error {
  override readonly name = 'StoreFileError';
}

/** SQLite's code for a file that is locked. */
const BUSY = 5;

export type SqliteStoreOptions = Readonly<{
  /** Epoch milliseconds. */
  now?: () => number;
  /** Time whose counts a killed process loses at most. */
  flushMs?: number;
  /** Told when the file cannot be written; counting goes on in memory, and the next flush tries again. */
  reportError?: (error: unknown) => void;
}>;

/**
 * The counts in memory, and in a file for the next start.
 *
 * Decisions never wait for the disk: changed callers are written in one transaction every `flushMs`. A process that is
 * killed loses that much. Requests under way are not kept: a process that is gone has none.
 */
export class SqliteStore implements LimitStore {
  readonly #memory: MemoryStore;
  readonly #lock: DatabaseSync | undefined;
  readonly #database: DatabaseSync;
  readonly #write: StatementSync;
  readonly #purge: StatementSync;
  readonly #flushing: NodeJS.Timeout;
  readonly #reportError: (error: unknown) => void;
  /** Callers that a failed flush did not write. */
  #unwritten = new Map<string, StoredCaller>();
  #purgeAt = 0;

  constructor(path: string, { now, flushMs = 200, reportError }: SqliteStoreOptions = {}) {
    this.#memory = new MemoryStore({ ...(now === undefined ? {} : { now }), trackChanges: true });
    this.#reportError = reportError ?? (() => undefined);
    this.#lock = path === ':memory:' ? undefined : lockFor(path);
    this.#database = openDatabase(path, this.#lock);
    this.#write = this.#database.prepare(
      'INSERT INTO callers VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET over_at = excluded.over_at, windows = excluded.windows',
    );
    this.#purge = this.#database.prepare('DELETE FROM callers WHERE over_at <= ?');
    this.#load();
    this.#flushing = setInterval(() => this.#flushReporting(), flushMs).unref();
  }

  get endpoints(): Endpoints {
    return this.#memory.endpoints;
  }

  get size(): number {
    return this.#memory.size;
  }

  nowMs(): number {
    return this.#memory.nowMs();
  }

  decide(ask: Ask): Verdict {
    return this.#memory.decide(ask);
  }

  release(ask: Ask, ticket: number, cpuSeconds: number): void {
    this.#memory.release(ask, ticket, cpuSeconds);
  }

  charge(ask: Ask, ticket: number, cpuSeconds: number, points: number): void {
    this.#memory.charge(ask, ticket, cpuSeconds, points);
  }

  giveBack(ask: Ask, ticket: number, decidedMs: number): void {
    this.#memory.giveBack(ask, ticket, decidedMs);
  }

  recount(ask: Ask, ticket: number, decidedMs: number, change: number): void {
    this.#memory.recount(ask, ticket, decidedMs, change);
  }

  chargeContent(key: string, count: number, rules: LimitRules): void {
    this.#memory.chargeContent(key, count, rules);
  }

  forget(key: string): void {
    this.#memory.forget(key);
  }

  peek(key: string): CallerState {
    return this.#memory.peek(key);
  }

  scan(): AsyncGenerator<CallerState> {
    return this.#memory.scan();
  }

  /** Writes what has changed since the last time. Throws when the file cannot be written; nothing is forgotten then. */
  flush(): void {
    for (const state of this.#memory.takeChanged()) this.#unwritten.set(state.key, state);
    const nowSeconds = Math.floor(this.nowMs() / 1000);
    const purging = nowSeconds >= this.#purgeAt;
    if (this.#unwritten.size === 0 && !purging) return;
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      for (const { key, windows } of this.#unwritten.values()) {
        const reset = windows.reduce((latest, window) => Math.max(latest, window.reset), 0);
        this.#write.run(key, reset, JSON.stringify(windows));
      }
      if (purging) this.#purge.run(nowSeconds);
      this.#database.exec('COMMIT');
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
    this.#unwritten.clear();
    if (purging) this.#purgeAt = nowSeconds + PURGE_SECONDS;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#flushing);
    try {
      this.flush();
    } finally {
      this.#database.close();
      this.#lock?.close();
    }
  }

  #flushReporting(): void {
    try {
      this.flush();
    } catch (error) {
      this.#reportError(error);
    }
  }

  #load(): void {
    const nowSeconds = Math.floor(this.nowMs() / 1000);
    this.#purge.run(nowSeconds);
    for (const row of this.#database.prepare('SELECT key, windows FROM callers').iterate()) {
      const windows = JSON.parse(String(row['windows'])) as StoredCaller['windows'];
      const open = windows.filter(({ reset }) => reset > nowSeconds);
      this.#memory.restore({ key: String(row['key']), windows: open });
    }
  }
}

/**
 * Takes the file for this process until the lock is closed, or the process is gone: two would overwrite each other's
 * counts. The lock is on a file beside it, so that the counts themselves can still be looked at.
 */
function lockFor(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(`${path}-lock`);
    lock.exec('PRAGMA busy_timeout = 2000; BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock?.close();
    if (!isSqliteError(error)) throw error;
    if (error.errcode !== BUSY) throw unusable(`${path}-lock`, error);
    const message = `${path} is used by another process: gateways that share counts need Redis`;
    throw new StoreFileError(message, { cause: error });
  }
}

function openDatabase(path: string, lock: DatabaseSync | undefined): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path);
    prepareSchema(database, path);
    return database;
  } catch (error) {
    database?.close();
    lock?.close();
    throw isSqliteError(error) ? unusable(path, error) : error;
  }
}

function unusable(path: string, error: Error): StoreFileError {
  return new StoreFileError(`${path} cannot be used: ${error.message}`, { cause: error });
}

function isSqliteError(error: unknown): error is Error & { errcode: number } {
  return error instanceof Error && 'errcode' in error;
}

function prepareSchema(database: DatabaseSync, path: string): void {
  // NORMAL: what was flushed survives the death of the process; a power cut may lose the last flushes.
  database.exec('PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');

  const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
  if (version > SCHEMA_VERSION) {
    throw new StoreFileError(`${path} was written by a newer version (${version})`);
  }
  database.exec(`
    CREATE TABLE IF NOT EXISTS callers (
      key TEXT PRIMARY KEY, over_at INTEGER NOT NULL, windows TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS callers_over_at ON callers (over_at);
    PRAGMA user_version = ${SCHEMA_VERSION};
  `);
}

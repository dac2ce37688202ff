import { DatabaseSync } from 'node:sqlite';

/**
 * The daemon's state: one SQLite database in WAL mode.
 *
 * `synchronous=NORMAL`: what was committed survives the death of the daemon; a power cut may lose the last commits,
 * but never leaves the database damaged.
 */
export class Database implements Disposable {
  readonly sql: DatabaseSync;
  #depth = 0;

  constructor(path: string) {
    this.sql = new DatabaseSync(path);
    this.sql.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA foreign_keys = ON;
      PRAGMA busy_timeout = 5000;
      CREATE TABLE IF NOT EXISTS schema_version (domain TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
    `);
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
    try {
      const result = work();
      this.sql.exec('COMMIT');
      return result;
    } catch (error) {
      this.sql.exec('ROLLBACK');
      throw error;
    } finally {
      this.#depth -= 1;
    }
  }

  [Symbol.dispose](): void {
    this.sql.close();
  }
}

import type { Database } from './database.ts';

type Log = { error(details: object, message: string): void; warn(details: object, message: string): void };
type Name = Readonly<{ table: string; id: string }>;

const STEPS = [
  'CREATE TABLE told_bad_records (record_table TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (record_table, id)) STRICT',
];

/**
 * At the daemon's start: names the records that cannot be read in the log, each at the first start that finds it. Those
 * that an earlier start has named are only counted.
 */
export function logBadRecords(db: Database, log: Log): void {
  db.migrate('told_bad_records', STEPS);
  const told = new Set(
    db.sql
      .prepare('SELECT record_table, id FROM told_bad_records')
      .all()
      .map((row) => keyOf({ table: String(row.record_table), id: String(row.id) })),
  );
  const bad = db.badRecords.all();
  const fresh = bad.filter((record) => !told.has(keyOf(record)));
  for (const { table, id, reason } of fresh) {
    log.error({ table, id, err: reason }, 'a record cannot be read: it is ignored, and stays as it is');
  }
  const known = bad.length - fresh.length;
  if (known > 0)
    log.warn({ records: known }, 'there are still records that cannot be read; an earlier start has named them');
  if (fresh.length > 0 || known < told.size) remember(db, bad, log);
}

function remember(db: Database, bad: readonly Name[], log: Log): void {
  try {
    db.transaction(() => {
      db.sql.exec('DELETE FROM told_bad_records');
      const insert = db.sql.prepare('INSERT INTO told_bad_records VALUES (?, ?)');
      for (const { table, id } of bad) insert.run(table, id);
    });
  } catch (error) {
    log.warn({ err: error }, 'the next start will name the records that cannot be read again');
  }
}

function keyOf({ table, id }: Name): string {
  return `${table} ${id}`;
}

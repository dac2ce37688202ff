import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Database } from './database.ts';
import { logBadRecords } from './log-bad-records.ts';

type Line = { table?: string; id?: string; records?: number };

/** Lines that a start logs when it finds these records. */
function said(db: Database, ...ids: string[]): Line[] {
  const lines: Line[] = [];
  const tell = (details: object): void => void lines.push(details);
  for (const bad of db.badRecords.all()) db.badRecords.delete(bad);
  for (const id of ids) db.badRecords.add({ table: 'execs', id, reason: 'cut' });
  logBadRecords(db, { error: tell, warn: tell });
  return lines.map(({ table, id, records }) => (records === undefined ? { table, id } : { records }));
}

test('a record that cannot be read is named once, and counted from then on', () => {
  using db = new Database(':memory:');

  assert.deepEqual(said(db), []);
  assert.deepEqual(said(db, 'a', 'b'), [
    { table: 'execs', id: 'a' },
    { table: 'execs', id: 'b' },
  ]);
  assert.deepEqual(said(db, 'a', 'b', 'c'), [{ table: 'execs', id: 'c' }, { records: 2 }]);
  assert.deepEqual(said(db, 'c'), [{ records: 1 }]);
  assert.deepEqual(said(db), []);
});

test('one that could be read in between is named anew', () => {
  using db = new Database(':memory:');
  said(db, 'a');
  said(db);

  assert.deepEqual(said(db, 'a'), [{ table: 'execs', id: 'a' }]);
});

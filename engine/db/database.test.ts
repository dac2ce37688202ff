import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Database } from './database.ts';

test('a transaction that throws leaves nothing behind', () => {
  using db = new Database(':memory:');
  db.migrate('things', ['CREATE TABLE things (name TEXT)']);

  assert.throws(() =>
    db.transaction(() => {
      db.sql.exec("INSERT INTO things VALUES ('half')");
      throw new Error('stop');
    }),
  );

  assert.deepEqual(db.sql.prepare('SELECT * FROM things').all(), []);
});

test('each migration step runs once', () => {
  using db = new Database(':memory:');
  const first = ['CREATE TABLE things (name TEXT)'];
  db.migrate('things', first);

  db.migrate('things', [...first, 'ALTER TABLE things ADD COLUMN size INTEGER']);
  db.migrate('things', [...first, 'ALTER TABLE things ADD COLUMN size INTEGER']);

  db.sql.exec("INSERT INTO things VALUES ('a', 1)");
  assert.equal(db.sql.prepare('SELECT count(*) AS n FROM things').get()?.n, 1);
});

test('state of a newer daemon is refused', () => {
  using db = new Database(':memory:');
  db.migrate('things', ['CREATE TABLE things (name TEXT)', 'CREATE TABLE more (name TEXT)']);

  assert.throws(
    () => db.migrate('things', ['CREATE TABLE things (name TEXT)']),
    /^Error: a newer daemon wrote the database: its table things has version 2, .* Start a daemon at least as new, or restore/,
  );
});

test('work after a commit happens after it, and not after a rollback', () => {
  using db = new Database(':memory:');
  const told: string[] = [];

  db.transaction(() => {
    db.transaction(() => db.afterCommit(() => told.push(`inside ${db.inTransaction}`)));
    told.push('end of the work');
  });
  assert.throws(() =>
    db.transaction(() => {
      db.afterCommit(() => told.push('rolled back'));
      throw new Error('stop');
    }),
  );
  db.afterCommit(() => told.push('at once'));
  db.transaction(() => undefined);

  assert.deepEqual(told, ['end of the work', 'inside false', 'at once']);
});

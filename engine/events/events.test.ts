import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Database } from '../db/database.ts';
import { systemClock } from '../lib/clock.ts';
import { Events } from './events.ts';

test('an event that is rolled back wakes nobody, and no reader misses the one after it', () => {
  using db = new Database(':memory:');
  const events = new Events(db, systemClock, { error: (details) => assert.fail(JSON.stringify(details)) });
  let woken = 0;
  using _listening = events.listen(() => (woken += 1));
  events.emit('container', 'first', 'a');

  assert.throws(() =>
    db.transaction(() => {
      events.emit('container', 'never', 'a');
      throw new Error('no space');
    }),
  );
  const { cursor } = events;
  db.transaction(() => {
    events.emit('container', 'second', 'a');
    assert.equal(woken, 1);
  });

  assert.deepEqual(
    events.after(cursor).map(({ action }) => action),
    ['second'],
  );
  assert.equal(woken, 2);
});

test('an event that stands alone and cannot be stored is logged, and fails nobody', () => {
  using db = new Database(':memory:');
  const logged: object[] = [];
  const events = new Events(db, systemClock, { error: (details) => void logged.push(details) });
  db.sql.exec('PRAGMA query_only = ON'); // like a failing disk

  events.emit('container', 'lost', 'a');
  assert.throws(() => db.transaction(() => events.emit('container', 'lost with its change', 'a')));

  assert.equal(logged.length, 1);
});

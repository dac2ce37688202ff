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

/** The sequence of what is kept, oldest first. */
function kept(events: Events): number[] {
  const sequences: number[] = [];
  for (let batch = events.after(events.start, 5000); batch.length > 0; batch = events.after(sequences.at(-1)!, 5000))
    for (const { sequence } of batch) sequences.push(sequence);
  return sequences;
}

test('a batch has few large events, and all of them are read in turn', () => {
  using db = new Database(':memory:');
  const events = new Events(db, systemClock, console);
  const text = 'x'.repeat(200_000);
  for (let n = 1; n <= 10; n += 1) events.emit('container', 'start', String(n), { text });
  for (let n = 11; n <= 20; n += 1) events.emit('container', 'start', String(n));

  assert.deepEqual(
    events.after(0).map(({ id }) => id),
    ['1', '2'],
  );
  assert.deepEqual(
    events.after(9).map(({ sequence }) => sequence),
    Array.from({ length: 11 }, (_, n) => n + 10),
  );
  assert.deepEqual(
    kept(events),
    Array.from({ length: 20 }, (_, n) => n + 1),
  );
});

test('the last events are kept, and of many at least as many as asked for', () => {
  using db = new Database(':memory:');
  const events = new Events(db, systemClock, console, { events: 1000, bytes: 1e9 });

  for (let n = 1; n <= 3700; n += 1) events.emit('container', 'start', String(n));

  const sequences = kept(events);
  assert.equal(sequences.at(-1), 3700);
  assert.ok(sequences.length >= 1000 && sequences.length < 1500, String(sequences.length));
});

test('of more than a hundred thousand events the last hundred thousand are kept, also for the next daemon', () => {
  using db = new Database(':memory:');
  const events = new Events(db, systemClock, console);
  const total = 120_000;

  db.transaction(() => {
    for (let n = 1; n <= total; n += 1) events.emit('container', 'start', String(n));
  });
  events.emit('container', 'start', String(total + 1));

  const next = new Events(db, systemClock, console);
  for (const all of [kept(events), kept(next)]) {
    assert.equal(all.at(-1), total + 1);
    assert.ok(all.length >= 100_000, String(all.length));
  }
});

test('events that take too many bytes are fewer, also for the next daemon', () => {
  using db = new Database(':memory:');
  const bounds = { events: 100_000, bytes: 1_000_000 };
  const first = new Events(db, systemClock, console, bounds);
  for (let n = 0; n < 1250; n += 1) first.emit('container', 'start', String(n), { text: 'x'.repeat(900) });
  const second = new Events(db, systemClock, console, bounds);

  for (let n = 0; n < 750; n += 1) second.emit('container', 'start', String(n), { text: 'x'.repeat(900) });

  const sequences = kept(second);
  assert.equal(sequences.at(-1), 2000);
  assert.ok(sequences.length > 900 && sequences.length < 1000, String(sequences.length));
});

test('times rise with every event, also when the clock goes back, and over a restart', () => {
  using db = new Database(':memory:');
  let now = 5_000_000n;
  const clock = { ...systemClock, now: () => new Temporal.Instant(now) };
  const first = new Events(db, clock, console);
  first.emit('volume', 'create', 'a');
  now = 1_000_000n;
  first.emit('volume', 'create', 'b');
  const second = new Events(db, clock, console);
  second.emit('volume', 'create', 'c');

  const times = second.after(0).map(({ time }) => time.epochNanoseconds);

  assert.deepEqual(times, [5_000_000n, 5_000_001n, 5_000_002n]);
});

test('listeners with equal filters read the events once', () => {
  using db = new Database(':memory:');
  const events = new Events(db, systemClock, console);
  const { cursor } = events;
  events.emit('volume', 'create', 'a');
  const first = events.after(cursor);

  assert.equal(events.after(cursor), first);
  events.emit('volume', 'create', 'b');
  assert.deepEqual(
    events.after(cursor).map(({ id }) => id),
    ['a', 'b'],
  );
  assert.throws(() =>
    db.transaction(() => {
      events.emit('volume', 'create', 'never');
      events.after(cursor);
      throw new Error('no space');
    }),
  );
  events.emit('volume', 'create', 'c');
  assert.deepEqual(
    events.after(cursor).map(({ id }) => id),
    ['a', 'b', 'c'],
  );
});

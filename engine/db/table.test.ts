import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Type, type Static } from 'typebox';

import { Database } from './database.ts';
import { Instant } from './decode.ts';
import { createTable } from './migration-sql.ts';
import { RecordTable, type Kind } from './table.ts';

const Ship = Type.Object({
  id: Type.String(),
  name: Type.String(),
  port: Type.String(),
  builtAt: Instant,
  startedAt: Type.Optional(Type.String({ description: 'A name that sounds like a time, and is none' })),
  voyages: Type.Array(Type.Object({ endedAt: Instant })),
  state: Type.Union([
    Type.Object({ status: Type.Literal('sunk'), since: Instant }),
    Type.Object({ status: Type.Literal('sailing'), since: Type.String() }),
  ]),
});
type Ship = Readonly<Static<typeof Ship>>;

const kind = {
  name: 'ships',
  schema: Ship,
  id: ({ id }: Ship) => id,
  unique: { name: ({ name }: Ship) => name },
  groups: { port: ({ port }: Ship) => (port === '' ? undefined : port) },
};

const builtAt = Temporal.Instant.from('2026-01-01T00:00:00.123456789Z');

function ship(id: string, more: Partial<Ship> = {}): Ship {
  return { id, name: `the ${id}`, port: '', builtAt, voyages: [], state: { status: 'sailing', since: 'May' }, ...more };
}

/** A new one over the same database sees what a daemon would that starts. */
function open<U extends string, G extends string>(
  db: Database,
  of: Kind<typeof Ship, U, G>,
): RecordTable<typeof Ship, U, G> {
  db.migrate('ships', [createTable('ships')]);
  return new RecordTable(db, of);
}

function ids(ships: { all(): readonly Ship[] }): string[] {
  return ships.all().map(({ id }) => id);
}

/** As written by another version, or with an editor. */
function write(db: Database, id: string, record: unknown, version = 1): void {
  const text = typeof record === 'string' ? record : JSON.stringify(record);
  db.sql.prepare('INSERT INTO ships (id, version, record) VALUES (?, ?, ?)').run(id, version, text);
}

function refusedWith(message: RegExp, work: () => void): void {
  assert.throws(work, { message });
}

test('records are the same after a restart, with times as the schema has them', () => {
  using db = new Database(':memory:');
  const ships = open(db, kind);
  const all = [
    ship('b', { startedAt: 'noon', voyages: [{ endedAt: builtAt }] }),
    ship('a', { state: { status: 'sunk', since: builtAt } }),
    ship('c', { state: { status: 'sailing', since: '2026-01-01T00:00:00Z' } }),
  ];
  for (const each of all) ships.insert(each);

  ships.change('b', (current) => ({ ...current, port: 'Kiel' }));

  const expected = [{ ...all[0]!, port: 'Kiel' }, ...all.slice(1)];
  assert.deepEqual(ships.all(), expected);
  assert.deepEqual(open(db, kind).all(), expected);
});

test('a change is committed before it returns, and may refuse or leave things as they are', () => {
  using db = new Database(':memory:');
  const ships = open(db, kind);
  ships.insert(ship('a'));

  const changed = ships.change('a', (current) => ({ ...current, name: 'Vasa' }));

  assert.equal(db.inTransaction, false);
  assert.equal(open(db, kind).get('a')?.name, 'Vasa');
  assert.equal(
    ships.change('a', (current) => current),
    changed,
  );
  refusedWith(/stop/, () =>
    ships.change('a', () => {
      throw new Error('stop');
    }),
  );
  refusedWith(/another id/, () => ships.change('a', () => ship('b')));
  refusedWith(/does not exist/, () => ships.change('b', (current) => current));
  refusedWith(/already exists/, () => ships.insert(ship('a')));
  assert.equal(ships.get('a'), changed);
});

test('a transaction that fails leaves memory, order and keys as they were', () => {
  using db = new Database(':memory:');
  const ships = open(db, kind);
  for (const id of ['a', 'b', 'c']) ships.insert(ship(id, { port: 'Kiel' }));
  const before = ships.all();
  const inKiel = ships.in('port', 'Kiel');

  refusedWith(/stop/, () =>
    db.transaction(() => {
      ships.delete('a');
      ships.insert(ship('d', { name: 'Mars', port: 'Kiel' }));
      ships.change('b', (current) => ({ ...current, name: 'Vasa', port: 'Turku' }));
      ships.delete('b');
      ships.put(ship('a', { name: 'the b', port: 'Turku' }));
      throw new Error('stop');
    }),
  );

  assert.deepEqual(ships.all(), before);
  assert.deepEqual(ships.in('port', 'Kiel'), inKiel);
  assert.deepEqual(ships.in('port', 'Turku'), []);
  assert.equal(ships.by('name', 'the a'), before[0]);
  assert.equal(ships.by('name', 'Vasa'), undefined);
  assert.deepEqual(open(db, kind).all(), before);
});

test('a record that the database refuses is not in memory either', () => {
  using db = new Database(':memory:');
  const ships = open(db, kind);
  ships.insert(ship('a'));
  db.sql.exec('PRAGMA query_only = ON');

  refusedWith(/readonly/, () => ships.insert(ship('b')));
  refusedWith(/readonly/, () => ships.change('a', (current) => ({ ...current, name: 'Vasa' })));
  refusedWith(/readonly/, () => ships.delete('a'));

  assert.deepEqual(ships.all(), [ship('a')]);
  assert.equal(ships.by('name', 'Vasa'), undefined);
});

test('a unique key has one holder, and is free when that one has another or is gone', () => {
  using db = new Database(':memory:');
  const ships = open(db, kind);
  ships.insert(ship('a', { name: 'Vasa' }));

  refusedWith(/b has the name of a/, () => ships.insert(ship('b', { name: 'Vasa' })));
  ships.change('a', (current) => ({ ...current, name: 'Mars' }));
  ships.insert(ship('b', { name: 'Vasa' }));
  refusedWith(/a has the name of b/, () => ships.change('a', (current) => ({ ...current, name: 'Vasa' })));
  ships.delete('b');
  ships.change('a', (current) => ({ ...current, name: 'Vasa' }));

  assert.equal(ships.by('name', 'Vasa')?.id, 'a');
  assert.equal(ships.by('name', 'Mars'), undefined);
});

test('records of a group are in the order of their insertion, in the same list until one of them changes', () => {
  using db = new Database(':memory:');
  const ships = open(db, kind);
  for (const id of ['b', 'a', 'c']) ships.insert(ship(id, { port: 'Kiel' }));
  ships.insert(ship('d'));

  const list = ships.in('port', 'Kiel');
  ships.change('d', (current) => ({ ...current, name: 'Vasa' }));
  assert.equal(ships.in('port', 'Kiel'), list);
  ships.change('a', (current) => ({ ...current, name: 'Mars' }));
  ships.delete('b');

  assert.deepEqual(
    ships.in('port', 'Kiel').map(({ name }) => name),
    ['Mars', 'the c'],
  );
  assert.deepEqual(open(db, kind).in('port', 'Kiel'), ships.in('port', 'Kiel'));
});

describe('a record that cannot be read', () => {
  const cases: [string, unknown, RegExp, number?][] = [
    ['is not JSON', '{"id":"x', /JSON/],
    ['is nothing', 'null', /^it must be object/],
    ['lacks a field', { ...ship('x'), name: undefined }, /^it must have required properties name/],
    ['has a field of another type', { ...ship('x'), name: 5 }, /^its field name must be string/],
    ['has an unknown state', { ...ship('x'), state: { status: 'flying' } }, /^its field state/],
    ['has no time where one should be', { ...ship('x'), builtAt: 'yesterday' }, /^"yesterday" is not a time/],
    ['is of a newer daemon', ship('x'), /has version 2, which is newer/, 2],
    ['is of another one', ship('y'), /says of itself that it is y/],
    ['has the name of another one', ship('x', { name: 'the a' }), /x has the name of a/],
  ];
  for (const [what, record, reason, version] of cases) {
    test(`because it ${what} is set aside, and stops no other`, () => {
      using db = new Database(':memory:');
      open(db, kind).insert(ship('a'));
      write(db, 'x', record, version);
      write(db, 'b', ship('b'));

      const ships = open(db, kind);

      assert.deepEqual(ids(ships), ['a', 'b']);
      assert.deepEqual(ships.idsSetAside(), ['x']);
      assert.throws(
        () => {
          throw db.badRecords.all()[0]?.reason;
        },
        { message: reason },
      );
    });
  }

  test('stays as it is until it is replaced on purpose', () => {
    using db = new Database(':memory:');
    open(db, kind);
    write(db, 'x', '{');
    const ships = open(db, kind);

    assert.throws(() => ships.insert(ship('x')), { kind: 'conflict', message: /cannot be read/ });
    refusedWith(/stop/, () =>
      db.transaction(() => {
        ships.put(ship('x'));
        throw new Error('stop');
      }),
    );
    assert.deepEqual(ships.idsSetAside(), ['x']);
    assert.equal(db.sql.prepare('SELECT record FROM ships').get()?.record, '{');
    ships.put(ship('x'));

    assert.deepEqual(ships.idsSetAside(), []);
    assert.deepEqual(ids(ships), ['x']);
  });

  test('can be one that only its domain finds fault with', () => {
    using db = new Database(':memory:');
    open(db, kind).insert(ship('a'));

    const ships = open(db, {
      ...kind,
      check: () => {
        throw new Error('no');
      },
    });

    assert.deepEqual(ships.idsSetAside(), ['a']);
  });
});

test('records of earlier versions are upgraded, and stored so with their next change', () => {
  using db = new Database(':memory:');
  open(db, kind);
  const { port: _, ...first } = ship('a', { name: 'THE A' });
  write(db, 'a', first, 1);
  write(db, 'b', ship('b', { name: 'THE B' }), 2);
  write(db, 'c', ship('c'), 3);
  const third = {
    ...kind,
    upgrades: [
      (old: Record<string, unknown>) => ({ ...old, port: 'Kiel' }),
      (old: Record<string, unknown>) => ({ ...old, name: String(old.name).toLowerCase() }),
    ],
  };

  const ships = open(db, third);

  assert.deepEqual(ships.all(), [ship('a', { port: 'Kiel' }), ship('b'), ship('c')]);
  ships.change('a', (current) => ({ ...current, port: 'Turku' }));
  assert.deepEqual(
    db.sql
      .prepare('SELECT version FROM ships ORDER BY id')
      .all()
      .map(({ version }) => version),
    [3, 2, 3],
  );
  assert.equal(open(db, third).get('a')?.port, 'Turku');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { addressOf, CallerTable } from './caller-table.ts';
import { EMPTY } from './slab.ts';

test('a table that callers come to and leave lists them as a Map does', () => {
  const table = new CallerTable();
  const expected = new Map<string, number>();
  const free = Array.from({ length: 3000 }, (_, n) => 2 + ((n * 1999) % 3000));
  let seed = 7;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
    return (seed >>> 8) % below;
  };

  for (let step = 0; step < 60_000; step += 1) {
    // It fills, thins out and fills again, so that entries move up behind many gaps.
    const key = `ip:${'x'.repeat(random(6))}${random(2500)}`;
    const address = expected.get(key);
    const leaves = address !== undefined && (step % 20_000 > 10_000 || random(3) === 0);
    assert.equal(table.find(key), address ?? EMPTY);
    if (leaves) {
      table.delete(key, address);
      expected.delete(key);
      free.push(address / addressOf(1));
    } else if (address === undefined && free.length > 0) {
      const number = free.shift()!;
      table.insert(key, addressOf(number));
      expected.set(key, addressOf(number));
    }
  }

  assert.ok(expected.size > 100);
  assert.equal(table.size, expected.size);
  for (const [key, address] of expected) assert.equal(table.find(key), address);
  const listed = Array.from({ length: table.numbers }, (_, number) => table.keyAt(number));
  assert.deepEqual(listed.filter((key) => key !== undefined).toSorted(), [...expected.keys()].toSorted());
});

test('keys that differ in one character, in their length or beyond Latin are different callers', () => {
  const table = new CallerTable();
  const keys = [
    '',
    'a',
    'aa',
    'aaa',
    'aaaa',
    'aaaaa',
    'aaab',
    'baaa',
    'user:é',
    'user:\u{10348}',
    'user:\u03a9',
    '\0',
    '\0\0',
  ];

  for (const [index, key] of keys.entries()) table.insert(key, addressOf(index + 2));

  assert.deepEqual(
    keys.map((key) => table.find(key)),
    keys.map((_, index) => addressOf(index + 2)),
  );
  assert.equal(table.find('user:e'), EMPTY);
});

test('a table that was emptied knows nobody', () => {
  const table = new CallerTable();
  for (let number = 2; number < 100; number += 1) table.insert(String(number), addressOf(number));

  table.clear();

  assert.deepEqual([table.size, table.numbers, table.find('50')], [0, 0, EMPTY]);
});

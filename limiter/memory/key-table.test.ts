import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KeyTable } from './key-table.ts';

test('keys are found, and no others, through any order of insertions and deletions', () => {
  const table = new KeyTable();
  const model = new Map<string, number>();
  let state = 12_345;
  const next = (below: number): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };

  for (let step = 0; step < 100_000; step += 1) {
    const number = 2 + next(5000);
    const key = `user:${number}`;
    if (model.has(key)) {
      table.delete(key);
      model.delete(key);
    } else {
      table.insert(key, number * 16);
      model.set(key, number * 16);
    }
    const other = `user:${2 + next(5000)}`;
    assert.equal(table.find(other), model.get(other) ?? 0);
  }

  assert.equal(table.size, model.size);
  assert.deepEqual(new Map(table), model);
});

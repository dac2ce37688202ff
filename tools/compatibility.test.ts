import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { testedRows } from './compatibility.ts';

const root = join(import.meta.dirname, '..');

test('each row of docs/compatibility.md names existing tests, or says that it is untested', () => {
  const rows = testedRows(readFileSync(join(root, 'docs/compatibility.md'), 'utf8'));

  const bad = rows.filter(
    ({ tests, isComplete }) =>
      !isComplete ||
      tests.some((path) => path !== 'untested' && !(path.endsWith('.test.ts') && existsSync(join(root, path)))),
  );

  assert.ok(rows.length > 200);
  assert.deepEqual(bad, []);
});

const HEAD = '| subject | Gantry | test |\n|---|---|---|\n';

for (const [row, isComplete] of [
  ['| names | short | `a.test.ts` |', true],
  ['| names | short | `untested` |', true],
  ['| names | short |  |', false],
  ['| names | short |', false],
] as const) {
  test(`the row ${row} is ${isComplete ? 'complete' : 'incomplete'}`, () => {
    assert.deepEqual(
      testedRows(HEAD + row).map((found) => found.isComplete),
      [isComplete],
    );
  });
}

test('an endpoint without a remark needs no test of its own', () => {
  const [row] = testedRows('| no | endpoint | remark | test |\n|---|---|---|---|\n| 1 | `GET /x` |  |  |');

  assert.equal(row?.isComplete, true);
});

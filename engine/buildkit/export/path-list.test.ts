import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PathList } from './path-list.ts';

test('paths are found by their numbers; others, and entries that are no files, have none', () => {
  const list = new PathList();
  const paths = Array.from({ length: 20_000 }, (_, at) =>
    at % 7 === 0 ? '' : `folder/\u00fc${'x'.repeat(at % 300)}${at}`,
  );

  for (const path of paths) list.add(path);

  assert.deepEqual(
    paths.map((_, at) => list.at(at)),
    paths,
  );
  assert.deepEqual([list.at(20_000), list.at(2 ** 32 - 1)], ['', '']);
});

test('paths beyond the limit are refused', () => {
  const list = new PathList();

  assert.throws(() => {
    for (;;) list.add('x'.repeat(4000));
  }, /too many files for an output of files: choose type=tar/);
});

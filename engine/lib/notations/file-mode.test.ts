import assert from 'node:assert/strict';
import { test } from 'node:test';

import { changedMode, parseModeChange } from './file-mode.ts';

/** A change, a mode before it, and the modes after it of a file and of a folder. */
const changes: readonly [string, number, number, number][] = [
  ['755', 0, 0o755, 0o755],
  ['04711', 0o644, 0o4711, 0o4711],
  ['a+x', 0o644, 0o755, 0o755],
  ['+x', 0o600, 0o711, 0o711],
  ['u=rwX,go=rX', 0o600, 0o644, 0o755],
  ['u=rwX,go=rX', 0o700, 0o755, 0o755],
  ['go-rwx', 0o777, 0o700, 0o700],
  ['u+s,g-w', 0o775, 0o4755, 0o4755],
  ['g=u,o=', 0o750, 0o770, 0o770],
  ['u=rw+x', 0, 0o700, 0o700],
  ['+t', 0o755, 0o1755, 0o1755],
];
for (const [text, before, file, folder] of changes) {
  test(`${text} of ${before.toString(8)}`, () => {
    const change = parseModeChange(text)!;

    assert.deepEqual([changedMode(change, before, false), changedMode(change, before, true)], [file, folder]);
  });
}

test('other words are no change of a mode', () => {
  for (const text of ['', '8', '77777', 'foo', 'u', 'u+', 'a=z', 'u+x,', 'x+u+'].filter((each) => each !== 'u+')) {
    assert.equal(parseModeChange(text), undefined, text);
  }
});

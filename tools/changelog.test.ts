import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { findChangelogProblems } from './changelog.ts';

test('the changelog has one line of at most 160 characters per change, under a version and a heading', () => {
  const text = readFileSync(join(import.meta.dirname, '..', 'CHANGELOG.md'), 'utf8');

  assert.deepEqual(findChangelogProblems(text), []);
});

const under = (...lines: string[]) => ['# Changelog', '', '## 1.2.3 - 2026-01-31', '', ...lines, ''].join('\n');

for (const [title, text, problems] of [
  ['a bullet', under('### Fixed', '', '- A crash.'), 0],
  ['bullets grouped by domain', under('### Added', '', '#### Engine', '', '- A flag.'), 0],
  ['a bullet of two lines', under('### Fixed', '', '- A crash', '  of the daemon.'), 1],
  ['a long bullet', under('### Fixed', '', `- ${'a'.repeat(159)}`), 1],
  ['a bullet without a heading', under('- A crash.'), 1],
  ['another heading', under('### Improved', '', '- A crash.'), 1],
  ['a version without a date', '## 1.2.3\n', 1],
  ['a bullet without a version', '# Changelog\n\n- A crash.\n', 1],
] as const) {
  test(`problems of ${title}: ${problems}`, () => {
    assert.equal(findChangelogProblems(text).length, problems);
  });
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { findChangelogProblems } from './changelog.ts';

const root = dirname(import.meta.dirname);

test('the changelog has one line of at most 160 characters per change, under a version and a heading', () => {
  const text = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');

  assert.deepEqual(findChangelogProblems(text), []);
});

test('each package and the lock file have the newest version of the changelog', () => {
  const text = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const [, newest] = /^## (\d+\.\d+\.\d+) /m.exec(text)!;
  const { workspaces = [] } = readPackage('.');
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;

  for (const folder of ['.', ...workspaces]) {
    const { version, dependencies, devDependencies } = readPackage(folder);
    const own = Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) => name.startsWith('@gantry/'));

    assert.deepEqual([version, lock.packages[folder === '.' ? '' : folder]?.version], [newest, newest], folder);
    for (const [name, range] of own) assert.equal(range, `^${newest}`, `${folder}: ${name}`);
  }
});

type Package = Readonly<{
  version: string;
  workspaces?: string[];
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}>;

type Lock = Readonly<{ packages: Readonly<Record<string, { version: string }>> }>;

function readPackage(folder: string): Package {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Package;
}

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

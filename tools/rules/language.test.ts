import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { findHiddenSubjects } from './language.ts';

const root = dirname(dirname(import.meta.dirname));
const MAX_SUBJECT_LENGTH = 72;

test('comments, test names and constants of the tree name their subject', () => {
  const names = ['*.ts', '*.c', '*.h', '*.sh', '*Makefile', 'gantry'];
  const paths = execFileSync('git', ['ls-files', ...names], { cwd: root, encoding: 'utf8' }).split('\n');
  const findings = paths
    .filter((path) => path !== '' && !path.startsWith('tools/rules/language'))
    .flatMap((path) =>
      findHiddenSubjects(path, readFileSync(join(root, path), 'utf8')).map(
        ({ line, reason, text }) => `${path}:${line}: ${reason}: ${text}`,
      ),
    );

  assert.deepEqual(findings, []);
});

/** `GANTRY_COMMITS=main..topic` checks the subjects of a range. */
test('subjects of the given commits have at most 72 characters', () => {
  const range = process.env['GANTRY_COMMITS'] ?? '-1';
  const subjects = execFileSync('git', ['log', '--format=%s', range], { cwd: root, encoding: 'utf8' }).split('\n');

  assert.deepEqual(
    subjects.filter((subject) => subject.length > MAX_SUBJECT_LENGTH),
    [],
  );
});

for (const [path, line, isFound] of [
  ['a.ts', '/** Of the volume. */', true],
  ['a.sh', '# What was fetched before is not asked for again.', true],
  ['a.ts', '# What a template may hold', false],
  ['a.ts', '  // What follows is slow', true],
  ['a.ts', 'const a = 1; // Who asks', true],
  ['a.ts', ' * The same without sizes.', true],
  ['a.ts', '/** Name of the volume. */', false],
  ['a.ts', "const url = 'http://What';", false],
  ['a.test.ts', "test('what a container gets', () => {", true],
  ['a.test.ts', "test('a container whose image is gone starts', () => {", true],
  ['a.test.ts', "test('a container without an image starts', () => {", false],
  ['a.ts', "test('what a container gets', () => {", false],
  ['a.c', '#define LARGEST_MESSAGE 4096', true],
  ['a.ts', 'const MAX_MESSAGE = 4096;', false],
] as const) {
  test(`${isFound ? 'found' : 'not found'} in ${path}: ${line}`, () => {
    assert.equal(findHiddenSubjects(path, line).length > 0, isFound);
  });
}

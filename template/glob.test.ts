import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hasWildcards, parseGlob, PatternError } from './glob.ts';
import { ignorePatterns } from './ignore-file.ts';

/** As Go's filepath.Match has it. */
const cases: readonly [string, readonly string[], readonly string[]][] = [
  ['a', ['a'], ['ab', '', 'a/b']],
  ['*', ['a', '', '.x', 'a\nb'], ['a/b']],
  ['**', ['a'], ['a/b']],
  ['*.txt', ['x.txt', '.txt'], ['x.txt2', 'a/x.txt']],
  ['*/x', ['a/x'], ['x', 'a/b/x']],
  ['a*b*c', ['abc', 'axbxc', 'abbcc'], ['ab', 'a/bc']],
  ['?', ['a', 'é', '😀'], ['', 'ab', '/']],
  ['[a-c]x', ['ax', 'cx'], ['dx', 'x']],
  ['[^a]', ['b', '/'], ['a', '']],
  ['[a-c/]b', ['/b', 'ab'], ['b']],
  ['[\\]]', [']'], ['\\]', 'a']],
  ['[\\a-\\c]', ['b'], ['\\']],
  ['[b-a]', [], ['a', 'b']],
  ['\\*', ['*'], ['a']],
  ['a.b', ['a.b'], ['axb']],
  ['(a|b)', ['(a|b)'], ['a']],
];
for (const [pattern, like, unlike] of cases) {
  test(`${pattern} matches the paths that Go's filepath.Match matches`, () => {
    const glob = parseGlob(pattern);

    assert.deepEqual(
      [...like, ...unlike].filter((path) => glob.matches(path)),
      like,
    );
  });
}

for (const pattern of ['[', '[a', '[]a]', '[a-]', '[-a]', '[^]', 'a\\', '[\\', 'a'.repeat(257)]) {
  test(`${pattern.slice(0, 10)} is refused as a pattern of filepath.Match`, () => {
    assert.throws(() => parseGlob(pattern), PatternError);
  });
}

test('a path may come in parts, and no place is left where nothing can match', () => {
  const glob = parseGlob('a/*/c');
  const inFolder = glob.follow(glob.begin(), 'a/');

  assert.equal(glob.isEnd(glob.follow(inFolder, 'b/c')), true);
  assert.equal(glob.isEnd(inFolder), false);
  assert.deepEqual(glob.follow(glob.begin(), 'b'), []);
});

const costly: readonly [string, string][] = [
  ['*a'.repeat(120), `${'a'.repeat(4000)}b`],
  ['?*'.repeat(120), 'a'.repeat(4000)],
  ['[a-z]*'.repeat(40), `${'a'.repeat(4000)}/`],
  ['*/'.repeat(120), 'a/'.repeat(2000)],
];
for (const [pattern, path] of costly) {
  test(`${pattern.slice(0, 8)}… costs at most the product of its length and the path's`, () => {
    const glob = parseGlob(pattern);

    glob.matches(path);

    assert.ok(glob.work <= pattern.length * path.length, `${glob.work} comparisons`);
  });
}

test('an ignore pattern of many stars costs at most twice the product of its length and the path', () => {
  const written = `${'**/a*'.repeat(40)}b`;
  const [{ glob }] = ignorePatterns(written) as [ReturnType<typeof ignorePatterns>[number]];

  glob.matches('a/'.repeat(2000));

  assert.ok(glob.work <= 2 * written.length * 4000, `${glob.work} comparisons`);
});

for (const [path, expected] of [
  ['a*', true],
  ['a\\*', false],
  ['a\\\\*', true],
  ['[', true],
  ['a?', true],
  ['a', false],
] as const) {
  test(`${path} has ${expected ? '' : 'no '}wildcards`, () => {
    assert.equal(hasWildcards(path), expected);
  });
}

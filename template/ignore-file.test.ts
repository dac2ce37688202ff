import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PatternError } from './glob.ts';
import { ignorePatterns, ignores } from './ignore-file.ts';

/** The lines of a file, what it leaves out, and what stays; as docker 20.10 has it. */
const cases: [string, string[], string[]][] = [
  ['a', ['a', 'a/b', 'a/b/c'], ['b', 'b/a', 'ab']],
  ['/a', ['a', 'a/b'], ['b/a']],
  ['*', ['a', 'a/b', '.x'], []],
  ['*.txt', ['x.txt', '.txt', 'x.txt/y'], ['x.txt2', 'a/x.txt']],
  ['*/x', ['a/x', 'a/x/y'], ['x', 'a/b/x']],
  ['**/x', ['x', 'a/x', 'a/b/x'], ['ax', 'x2']],
  ['a/**', ['a/b', 'a/b/c'], ['a', 'b']],
  ['a/**/z', ['a/z', 'a/b/z', 'a/b/c/z'], ['a', 'z', 'a/bz']],
  ['a**b', ['ab', 'a/b', 'ax/b'], ['axb', 'a/ab']],
  ['**', ['a', 'a/b'], []],
  ['**/*.log', ['x.log', 'a/b/x.log'], ['x.log2']],
  ['?', ['a', 'é', '😀'], ['ab', '']],
  ['[a-c]x', ['ax', 'cx'], ['dx', 'x']],
  ['[^a]x', ['bx'], ['ax']],
  ['[]a]', [']', 'a'], ['b']],
  ['\\*', ['*'], ['a']],
  ['a.b', ['a.b'], ['axb']],
  ['(a|b)', ['(a|b)'], ['a', 'b']],
  ['./a/../b/', ['b', 'b/c'], ['a']],
  ['*\n!keep', ['a', 'keep2'], ['keep', 'keep/a']],
  ['a\n!a/b\na/b/c', ['a', 'a/x', 'a/b/c'], ['a/b', 'a/b/d']],
  ['!a\na', ['a'], []],
  ['# a\n\n  b  \n#', ['b'], ['a', '# a']],
  ['\ufeffa', ['a'], []],
  ['.', [], ['a', '.']],
];
for (const [text, out, kept] of cases) {
  test(`${JSON.stringify(text)} leaves out the files that docker leaves out`, () => {
    const patterns = ignorePatterns(text);

    assert.deepEqual(
      [...out, ...kept].filter((path) => ignores(patterns, path)),
      out,
    );
  });
}

for (const [text, refusal] of [
  ['!', /illegal exclusion pattern: "!"/],
  ['a\n! ', /illegal exclusion pattern/],
  ['[a', /syntax error in pattern: \[a/],
  ['[b-a]', /syntax error in pattern/],
  ['a'.repeat(300), /the pattern has more than 256 characters/],
] as const) {
  test(`${JSON.stringify(text.slice(0, 10))} is refused as a pattern`, () => {
    assert.throws(
      () => ignorePatterns(text),
      (error) => error instanceof PatternError && refusal.test(error.message),
    );
  });
}

test('a pattern of many stars tries no place of a path twice', () => {
  const patterns = ignorePatterns(`${'*a'.repeat(100)}b\n${'**/a*'.repeat(40)}b`);

  assert.equal(ignores(patterns, 'a'.repeat(4000)), false);
  assert.equal(ignores(patterns, 'a/'.repeat(2000)), false);
  assert.equal(ignores(patterns, 'a'.repeat(5000)), false);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EMPTY_CONFIG } from '../records/run-config.ts';
import { applyChanges } from './changes.ts';
import { expandWord, variablesOf } from './expansion/expand.ts';
import { ExpansionBudget } from './expansion/expansion-budget.ts';
import { parseFile } from './parse.ts';
import { planOf } from './stages.ts';

const lines = (count: number, each: string): string => `FROM x\n${each.repeat(count)}`;

const files: readonly [string, string, string][] = [
  ['5 MB', lines(80, `# ${'x'.repeat(65_000)}\n`), 'the file has more than 4,194,304 bytes'],
  ['100,001 lines', lines(100_000, '\n'), 'the file has more than 100,000 lines'],
  ['10,001 instructions', lines(10_000, 'USER 1\n'), 'the file has more than 10,000 instructions'],
  ['501 stages', lines(500, 'FROM x\n'), 'the file has more than 500 stages'],
  [
    'an instruction of 300 KB',
    `FROM x\nRUN ${`${'x'.repeat(999)}\\\n`.repeat(300)}`,
    'the instruction of line 2 has more than 262,144 characters',
  ],
];
for (const [what, text, message] of files) {
  test(`a Buildfile with ${what} is refused`, () => {
    assert.throws(() => planOf(parseFile(text)), { kind: 'invalid', message });
  });
}

test('a Buildfile just below each limit is read', () => {
  const text = `${'FROM x\n'.repeat(500)}${'USER 1\n'.repeat(9500)}${'#\n'.repeat(89_999)}`;

  assert.equal(planOf(parseFile(text)).stages.length, 500);
});

const changes: readonly [string, RegExp][] = [
  [`EXPOSE ${'1-9999 '.repeat(3)}`, /EXPOSE has more than 20,000 ports/],
  [`ENV ${Array.from({ length: 20_001 }, (_, at) => `a${at}=1`).join(' \\\n')}`, /more than 20,000 entries/],
];
for (const [change, refusal] of changes) {
  test(`the settings of ${change.slice(0, 12)}… are refused`, () => {
    assert.throws(() => applyChanges([change], EMPTY_CONFIG), { kind: 'invalid', message: refusal });
  });
}

test('settings of more than 2 MB are refused, one label after the other', () => {
  const labels = Array.from({ length: 40 }, (_, at) => `LABEL a${at}=${'x'.repeat(60_000)}`);

  assert.throws(() => applyChanges(labels, EMPTY_CONFIG), { message: /more than 2,097,152 characters/ });
});

const value = 'x'.repeat(300_000);
const words: readonly [string, string, RegExp][] = [
  ['long values', '$a$a$a$a', /the result is longer than 1048576 characters/],
  ['long values in quotes', '"$a$a$a$a"', /the result is longer than 1048576 characters/],
  ['long values in each other', '${b:-${b:-${b:-$a}}}', /the result is longer than 1048576 characters/],
  ['100,001 variables', '$b'.repeat(100_001), /more than 100000 variables/],
  ['a pattern of stars', `\${a#${'*x'.repeat(100)}y}`, /the value is too long for its pattern/],
  ['a replacement at every place', '${a//*y/z}', /the value is too long for its pattern/],
  ['a long replacement', '${a//x/yyyyy}', /the result is longer than 1048576 characters|too long for its pattern/],
];
for (const [what, word, refusal] of words) {
  test(`an expansion is refused: ${what}`, () => {
    assert.throws(() => expandWord(word, variablesOf([`a=${value}`]), '\\'), { kind: 'invalid', message: refusal });
  });
}

test('all words of an instruction share their limit', () => {
  const budget = new ExpansionBudget();
  const expand = (): string => expandWord('$a', variablesOf([`a=${value}`]), '\\', budget);
  for (let word = 0; word < 3; word += 1) expand();

  assert.throws(expand, { message: /the result is longer than 1048576 characters/ });
});

const patterns: readonly [string, string, string][] = [
  ['${a%.*}', 'b.tar.gz', 'b.tar'],
  ['${a%%.*}', 'b.tar.gz', 'b'],
  ['${a##*/}', '/x/y', 'y'],
  ['${a/x/y}', 'xx', 'yx'],
  ['${a//x/yy}', 'axbx', 'ayybyy'],
  ['${a//**b/c}', 'aabab', 'c'],
];
for (const [word, given, expected] of patterns) {
  test(`${word} of ${given} is ${expected}`, () => {
    assert.equal(expandWord(word, variablesOf([`a=${given}`]), '\\'), expected);
  });
}

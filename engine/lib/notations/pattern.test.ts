import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parsePattern, parsePatterns } from './pattern.ts';

const cases: [pattern: string, text: string, expected: boolean][] = [
  ['eb', 'web-1', true],
  ['^web$', 'web-1', false],
  ['^web-[[:digit:]]+$', 'web-1', true],
  ['(?i)WEB', 'web-1', true],
  ['\\d\\z', 'web-1', true],
  ['', 'web', true],
  ['^web-1$', 'web-1', true],
  ['^eb', 'web-1', false],
  ['b-1$', 'web-1', true],
  ['^$', 'web-1', false],
  ['a$b', 'a$b', false],
];
for (const [pattern, text, expected] of cases) {
  test(`${text} is ${expected ? '' : 'not '}like ${pattern}`, () => {
    assert.equal(parsePattern(pattern)?.(text), expected);
  });
}

for (const written of ['(', 'web(?=-)', '(a)\\1', '[z-a]', '*', '(a{100}){100}'.replace('{100})', '{1000})')]) {
  test(`${written} is no pattern`, () => {
    assert.equal(parsePattern(written), undefined);
  });
}

for (const written of ['a'.repeat(257), '(a?){1000}(b?){1000}']) {
  test(`a pattern of ${written.length} characters is refused: ${written.slice(0, 20)}`, () => {
    assert.throws(() => parsePattern(written), { kind: 'invalid' });
  });
}

const costly = [
  '(a+)+$',
  '(a|a)*$',
  '(a|aa)+$',
  '(.*a){25}$',
  '(a*)*b',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  '(a?){200}a{200}$',
];
// Tried in every way they would take longer than the universe has: that it answers at all is the proof.
for (const written of costly) {
  test(`${written} is answered on a long text`, () => {
    const pattern = parsePattern(written)!;

    pattern(`${'a'.repeat(4095)}!`);
  });
}

test('a text of more than 4,096 characters is like plain text alone', () => {
  assert.equal(parsePattern('a')?.('a'.repeat(4097)), true);
  assert.equal(parsePattern('a+')?.('a'.repeat(4097)), false);
});

test('patterns that are too large together are refused, plain names are not counted', () => {
  const names = Array.from({ length: 5000 }, (_, at) => `^/web-${at}$`);

  assert.equal(parsePatterns([...names, '(', 'a|b']).length, 5001);
  assert.throws(() => parsePatterns(names.map((name) => `${name}|x`)), { kind: 'invalid' });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseBoundedJson, UnboundedJsonError } from './bounded-json.ts';

const texts = [
  '1',
  '"[[[["',
  '"a\\"[[[["',
  '"a\\\\"',
  '{"a":[1,{"b":"},]"},[]],"c\\u0022[":null}',
  ` ${'['.repeat(100)}${']'.repeat(100)} `,
  `[${'[[]],'.repeat(20_000)}0]`,
];

for (const text of texts) {
  test(`${text.slice(0, 40)} is parsed as by JSON.parse`, () => {
    assert.deepEqual(parseBoundedJson(text), JSON.parse(text));
  });
}

for (const text of ['', '[', '"', '"\\', '{]', '[1,]', '['.repeat(50), '"\n"', '1"[']) {
  test(`${JSON.stringify(text.slice(0, 40))} is no JSON`, () => {
    assert.throws(() => parseBoundedJson(text), SyntaxError);
  });
}

const DEPTH = /^it is nested deeper than 100 levels$/;
const VALUES = /^it has more than 100000 values$/;

const unbounded: readonly (readonly [what: string, text: string, message: RegExp])[] = [
  ['7 MB of brackets', '['.repeat(7e6), DEPTH],
  ['objects in objects', '{"a":'.repeat(1e6), DEPTH],
  ['brackets after a text with a quote', `["\\"",${'['.repeat(101)}`, DEPTH],
  ['many empty lists', `[${'[],'.repeat(1e6)}`, VALUES],
  ['many numbers', `[${'1,'.repeat(1e6)}`, VALUES],
  ['many keys', `{${'"a":1,'.repeat(1e6)}`, VALUES],
];

for (const [what, text, message] of unbounded) {
  test(`${what} are refused, also cut ones, which JSON.parse would read to the end`, () => {
    assert.throws(() => parseBoundedJson(text), { constructor: UnboundedJsonError, message });
  });
}

test('other limits count', () => {
  assert.deepEqual(parseBoundedJson('[1,[2]]', { maxDepth: 2, maxValues: 4 }), [1, [2]]);
  assert.throws(() => parseBoundedJson('[1,[2]]', { maxDepth: 1 }), UnboundedJsonError);
  assert.throws(() => parseBoundedJson('[1,[2]]', { maxValues: 3 }), UnboundedJsonError);
});

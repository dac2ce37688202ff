import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { acceptedType } from './accepted-type.ts';

const OFFERS = ['a/jsonl', 'a/ndjson', 'a/seq'] as const;

suite('acceptedType', () => {
  const cases: [accept: string | undefined, type: string | undefined][] = [
    [undefined, undefined],
    ['', undefined],
    ['*/*', undefined],
    ['a/*', undefined],
    ['text/plain', undefined],
    ['a/seq', 'a/seq'],
    ['a/seq, a/ndjson', 'a/ndjson'],
    ['a/seq,a/ndjson;q=0.5', 'a/seq'],
    ['A/SEQ; Q=0.1 , */*', 'a/seq'],
    ['a/seq;q=0', undefined],
    ['a/seq;q=much', undefined],
    ['a/seq;version=1', 'a/seq'],
  ];
  for (const [accept, type] of cases) {
    test(`${accept} is ${type}`, () => {
      assert.equal(acceptedType(accept, OFFERS), type);
    });
  }
});

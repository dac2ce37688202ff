import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseGenericResources } from './generic-resources.ts';

const PREFIX = 'could not parse GenericResource: ';

for (const [words, expected] of [
  [[], []],
  [['SSD=5'], [{ kind: 'SSD', amount: 5 }]],
  [['a=0'], [{ kind: 'a', amount: 0 }]],
  [['a=1.5'], [{ kind: 'a', name: '1.5' }]],
  [
    ['GPU=one', 'SSD=5', 'GPU=two', 'GPU=one'],
    [
      { kind: 'SSD', amount: 5 },
      { kind: 'GPU', name: 'one' },
      { kind: 'GPU', name: 'two' },
    ],
  ],
  [['x'], `${PREFIX}incorrect term x, missing '=' or malformed expression`],
  [['a='], `${PREFIX}incorrect term a=, missing '=' or malformed expression`],
  [['=3'], `${PREFIX}incorrect term =3, missing '=' or malformed expression`],
  [['a=b=c'], `${PREFIX}incorrect term a=b=c, missing '=' or malformed expression`],
  [['a=1,b=2'], `${PREFIX}incorrect term a=1,b=2, missing '=' or malformed expression`],
  [['a=1', 'a=2'], `${PREFIX}mixed discrete and named resources in expression 'a=[1 2]'`],
  [['a=1', 'a=x'], `${PREFIX}mixed discrete and named resources in expression 'a=[1 x]'`],
  [['a=-1'], `${PREFIX}cannot ask for negative resource a`],
  [['a=99999999999999999999'], `${PREFIX}the amount of a is too large`],
] as const) {
  test(`resources ${JSON.stringify(words)}`, () => {
    if (typeof expected === 'string') assert.throws(() => parseGenericResources(words), { message: expected });
    else assert.deepEqual(parseGenericResources(words), expected);
  });
}

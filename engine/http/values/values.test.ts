import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Type } from 'typebox';

import { readBody, type ValueSchema } from './values.ts';

const Limit = Type.Object({ Name: Type.Optional(Type.String()), Soft: Type.Optional(Type.Integer()) });
const Body = Type.Object({
  Image: Type.Optional(Type.String()),
  Labels: Type.Optional(Type.Record(Type.String(), Type.String())),
  HostConfig: Type.Optional(
    Type.Object({
      Binds: Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()])),
      Ulimits: Type.Optional(Type.Union([Type.Array(Limit), Type.Null()])),
    }),
  ),
  Endpoints: Type.Optional(Type.Record(Type.String(), Type.Union([Limit, Type.Null()]))),
});

const cases: [what: string, given: object, expected: object][] = [
  ['the exact key', { Image: 'a' }, { Image: 'a' }],
  ['a key in another case', { image: 'a' }, { Image: 'a' }],
  ['the exact key before any other', { Image: 'a', image: 'b', IMAGE: 'c' }, { Image: 'a' }],
  ['the last of several others', { image: 'b', IMAGE: 'c' }, { Image: 'c' }],
  ['keys of an inner object', { hostconfig: { binds: ['/a:/b'] } }, { HostConfig: { Binds: ['/a:/b'] } }],
  [
    'keys of the objects in a list',
    { hostConfig: { ulimits: [{ name: 'core', SOFT: 1 }] } },
    { HostConfig: { Ulimits: [{ Name: 'core', Soft: 1 }] } },
  ],
  ['keys of the objects in a map', { endpoints: { Net: { name: 'x' } } }, { Endpoints: { Net: { Name: 'x' } } }],
  ['no key of a map, which is data', { labels: { a: '1', A: '2' } }, { Labels: { a: '1', A: '2' } }],
  ['null as not given', { image: null }, {}],
  ['nothing of what it does not know', { imagine: 'a', __proto__x: 1 }, { imagine: 'a', __proto__x: 1 }],
];

for (const [what, given, expected] of cases) {
  test(`a body is read as Go reads it: ${what}`, () => {
    assert.deepEqual(readBody(Body as ValueSchema, given), expected);
  });
}

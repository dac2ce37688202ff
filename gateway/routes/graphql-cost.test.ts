import assert from 'node:assert/strict';
import { test } from 'node:test';

import { GraphqlCost } from './graphql-cost.ts';

const byOperation = new GraphqlCost('operation');
const byRequest = new GraphqlCost('request');

const UNREAD = 50;
const twice = Array.from({ length: 40 }, (_, n) => `fragment F${n} on A { ...F${n + 1} ...F${n + 1} }`).join(' ');

const documents: readonly (readonly [document: string, cost: number, operationName?: string])[] = [
  ['{ a }', 1],
  ['{ a b c }', 3],
  ['{ a: x b: x c: x }', 3],
  ['{ a { b c d } }', 1],
  ['{ a { one: b two: b } }', 3],
  ['{ a { b { one: c } two: b { three: c } } }', 4],
  ['mutation { a }', 5],
  ['mutation { one: a two: a }', 10],
  ['subscription { a }', 5],
  ['query A { a } mutation B { b c }', 10],
  ['query A { a } mutation B { b c }', 1, 'A'],
  ['query A { a } mutation B { b c }', 10, 'B'],
  ['query A { a } query A { b c }', 2, 'A'],
  ['{ ...F ...F } fragment F on Query { a b }', 4],
  ['{ x { ...F } } fragment F on X { one: a { two: b } c }', 3],
  ['{ ... on Query { a ... on Query { b } } }', 2],
  ['{ ...F } fragment F on Query { a ...F }', 1],
  ['{ ...Missing }', 1],
  [`{ ...F0 } ${twice} fragment F40 on A { a }`, 1_000_000],
  ['{ a', UNREAD],
  ['', UNREAD],
  ['type A { a: Int }', UNREAD],
  ['{ a } type A { a: Int }', UNREAD],
  [`{ ${'a '.repeat(10_001)} }`, UNREAD],
  [`${'{a'.repeat(4900)}${'}'.repeat(4900)}`, -1],
];
for (const [document, cost, operationName] of documents) {
  test(`${document.slice(0, 60)} ${operationName ?? ''} costs ${cost}`, () => {
    const body = Buffer.from(JSON.stringify({ query: document, operationName }));

    const found = byOperation.ofBody('application/json', body);

    // Nesting that the parser may or may not follow, depending on the free stack.
    assert.ok(cost < 0 ? [1, UNREAD].includes(found) : found === cost, `${found}`);
  });
}

test('a batch costs the sum of its requests, and an unreadable one as much as many', () => {
  const batch = '[{"query":"{a b}"},{"query":"mutation{c}"},{"query":"{d}","variables":{"x":"]"}}]';

  const costs = [batch, '[]', `${batch}x`, '[{"query":"{a}"},1]', '[{"query":"{a}"},{"id":"persisted"}]'].map((body) =>
    byOperation.ofBody('application/json', Buffer.from(body)),
  );

  assert.deepEqual(costs, [8, UNREAD, UNREAD, UNREAD, UNREAD]);
  assert.equal(byOperation.ofBody('text/plain', Buffer.from('{"query":"{a}"}')), UNREAD);
});

test('by request all of them cost the same', () => {
  const costs = ['{"query":"{a b c}"}', '{"query":"mutation{a b}"}', '[{"query":"{a}"}]', 'nothing'].map((body) =>
    byRequest.ofBody('application/json', Buffer.from(body)),
  );

  assert.deepEqual(costs, [1, 5, 5, 5]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { graphqlKind } from './graphql.ts';

type Kind = 'query' | 'mutation';

const documents: readonly (readonly [document: string, kind: Kind, operationName?: string | null])[] = [
  ['{ viewer { login } }', 'query'],
  ['query { a }', 'query'],
  ['query A($x: Int = 3, $y: [String!]!) @d(if: true) { a(x: $x) }', 'query'],
  ['mutation { a }', 'mutation'],
  ['mutation A { a }', 'mutation'],
  ['  \n\t,,, mutation{a}', 'mutation'],
  ['# query\nmutation { a }', 'mutation'],
  ['# mutation\nquery { a }', 'query'],
  ['\uFEFFmutation { a }', 'mutation'],
  ['{ mutation }', 'query'],
  ['{ a { mutation { b } } }', 'query'],
  ['query mutation { a }', 'query'],
  ['{ a(text: "mutation { b }") }', 'query'],
  ['{ a(text: "\\"} mutation { b }") }', 'query'],
  ['{ a(text: """block "quoted" } mutation { b } """) }', 'query'],
  ['{ a(text: """\\""" } mutation { b }""") }', 'query'],
  ['fragment F on A { a } query { ...F }', 'query'],
  ['query { ...F } fragment F on A { a }', 'query'],
  ['fragment F on A { a } mutation { ...F }', 'mutation'],
  ['query A { a } mutation B { b }', 'mutation'],
  ['query A { a } mutation B { b }', 'query', 'A'],
  ['query A { a } mutation B { b }', 'mutation', 'B'],
  ['query A { a } mutation B { b }', 'mutation', 'C'],
  ['query A { a } mutation B { b }', 'mutation', ''],
  ['query A { a } mutation A { b }', 'mutation', 'A'],
  ['query A { a } query B { b }', 'query', 'B'],
  ['query A { a }', 'query', null],
  ['subscription { a }', 'mutation'],
  ['{ a } mutation { b }', 'mutation'],
  ['{ a }{ b }', 'query'],
  ['type A { a: Int }', 'mutation'],
  ['', 'mutation'],
  ['{ a', 'mutation'],
  ['{ a }}', 'mutation'],
  ['{ a(text: "open) }', 'mutation'],
  ['{ a(text: """open) }', 'mutation'],
  ['query', 'mutation'],
  ['(', 'mutation'],
  ['{ a ) }', 'mutation'],
];
for (const [document, kind, operationName] of documents) {
  const named = operationName === undefined ? '' : ` as ${JSON.stringify(operationName)}`;
  test(`${JSON.stringify(document)}${named} is a ${kind}`, () => {
    const body = JSON.stringify({ query: document, ...(operationName === undefined ? {} : { operationName }) });

    assert.equal(graphqlKind('application/json', Buffer.from(body)), kind);
    if (operationName === undefined && !document.startsWith('\uFEFF')) {
      assert.equal(graphqlKind('application/graphql; charset=utf-8', Buffer.from(document)), kind);
    }
  });
}

const bodies: readonly (readonly [what: string, body: string | Buffer, kind: Kind, type?: string])[] = [
  ['variables that speak of mutations', '{"query":"{a}","variables":{"x":"mutation {a}"}}', 'query'],
  ['another order of keys', '{"variables":{"a":[1,{"b":"}"}]},"operationName":null,"query":"{a}"}', 'query'],
  ['white space', ' \r\n{ "query" : "{a}" , "variables" : null } \n', 'query'],
  ['a query with escapes', String.raw`{"query":"\u006dutation { a }"}`, 'mutation'],
  ['a key with escapes', String.raw`{"qu\u0065ry":"mutation { a }"}`, 'mutation'],
  ['a key in capitals beside the query', '{"query":"{a}","Query":"mutation{a}"}', 'mutation'],
  ['the query twice', '{"query":"{a}","query":"mutation{a}"}', 'mutation'],
  ['a persisted query', '{"extensions":{"persistedQuery":{"sha256Hash":"x"}},"query":"{a}"}', 'mutation'],
  ['a persisted query, spelled', String.raw`{"extensions":{"p\u0065rsistedQuery":1},"query":"{a}"}`, 'mutation'],
  ['other extensions', '{"extensions":{"trace":true},"query":"{a}"}', 'query'],
  ['an unknown key', '{"query":"{a}","id":"abc"}', 'mutation'],
  ['no query', '{"operationName":"A"}', 'mutation'],
  ['a query that is no text', '{"query":["{a}"]}', 'mutation'],
  ['a batch', '[{"query":"{a}"}]', 'mutation'],
  ['two values', '{"query":"{a}"}{"query":"mutation{a}"}', 'mutation'],
  ['an open object', '{"query":"{a}"', 'mutation'],
  ['a comma too many', '{"query":"{a}",}', 'mutation'],
  ['no JSON', 'query={a}', 'mutation'],
  ['nothing', '', 'mutation'],
  ['a form', 'query=%7Ba%7D', 'mutation', 'application/x-www-form-urlencoded'],
  ['no type', '{"query":"{a}"}', 'mutation', ''],
  ['another type', '{"query":"{a}"}', 'mutation', 'text/plain'],
  ['the type in capitals, with a parameter', '{"query":"{a}"}', 'query', 'Application/JSON; charset=utf-8'],
  ['the type with a quoted parameter', '{"query":"{a}"}', 'query', 'application/json; a=b; charset="utf-8"'],
  [
    'another charset, in which the text may say something else',
    '{"query":"{a}","variables":{"x":"+ACI-},+ACI-query+ACI-:+ACI-mutation{a}+ACI-,+ACI-y+ACI-:{+ACI-z+ACI-:+ACI-"}}',
    'mutation',
    'application/json; charset=utf-7',
  ],
  ['UTF-16', Buffer.from('{"query":"{a}"}', 'utf16le'), 'mutation'],
  ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'mutation'],
  ['a byte order mark', Buffer.from('\uFEFF{"query":"{a}"}'), 'mutation'],
];
for (const [what, body, kind, type = 'application/json'] of bodies) {
  test(`${what}: ${kind}`, () => {
    assert.equal(graphqlKind(type === '' ? undefined : type, Buffer.from(body)), kind);
  });
}

test('deep nesting and long strings take time in proportion to their length', () => {
  const deep = `${'{a'.repeat(200_000)}${'}'.repeat(200_000)}`;
  const deepJson = `{"query":"{a}","variables":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
  const quotes = `{"query":"{a}","variables":"${'\\"'.repeat(300_000)}"}`;
  const open = `{ a ${'""'.repeat(300_000)}`;
  const started = performance.now();

  const kinds = [
    graphqlKind('application/graphql', Buffer.from(deep)),
    graphqlKind('application/json', Buffer.from(deepJson)),
    graphqlKind('application/json', Buffer.from(quotes)),
    graphqlKind('application/graphql', Buffer.from(open)),
  ];

  assert.deepEqual(kinds, ['query', 'query', 'query', 'mutation']);
  // The square of these lengths takes minutes.
  assert.ok(performance.now() - started < 30_000);
});

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { NEWEST, type ApiVersion } from '../versions/api-version.ts';
import { FIELD_VERSIONS } from '../versions/field-versions.ts';
import { ENDPOINTS } from './endpoints.ts';

type Tree = {
  properties?: Record<string, Tree>;
  items?: Tree;
  patternProperties?: Record<string, Tree>;
  anyOf?: Tree[];
};
type Content = { content?: { 'application/json'?: { schema: Tree } } };
type Operation = {
  parameters: { name: string; in: string }[];
  requestBody?: Content;
  responses: Record<string, Content>;
};
type Document = { info: { version: string }; paths: Record<string, Record<string, Operation>> };

suite('/openapi.json by version', { concurrency: false }, () => {
  let engine: TestEngine;
  const known = new Map<string, Document>();
  before(async () => {
    engine = await TestEngine.start({ image: false, version: NEWEST, flags: ['--bridge=none'] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function documentOf(version: ApiVersion): Promise<Document> {
    const kept = known.get(version);
    if (kept !== undefined) return kept;
    using api = new Api(engine.socketPath, `/v${version}`);
    const { body } = await api.get<Document>('/openapi.json');
    known.set(version, body);
    return body;
  }

  async function operationOf(name: string, version: ApiVersion): Promise<Operation | undefined> {
    const [method = '', path = ''] = name.split(' ');
    const { paths } = await documentOf(version);
    const shape = (text: string): string => text.replaceAll(/\{\w+\}/g, '{}');
    const found = Object.entries(paths).find(([each]) => shape(each) === shape(path));
    return found?.[1][method.toLowerCase()];
  }

  test('an endpoint is in the document from its version on', async () => {
    assert.equal((await documentOf('1.24')).info.version, '1.24');
    for (const { name, since } of ENDPOINTS) {
      if (since === undefined || (await operationOf(name, NEWEST)) === undefined) continue;
      assert.ok((await operationOf(name, since)) !== undefined, name);
      assert.equal(await operationOf(name, under(since)), undefined, name);
    }
  });

  test('a field is in the document from its version on', async () => {
    for (const [name, { query = {}, body = {}, answer = {} }] of Object.entries(FIELD_VERSIONS)) {
      const rows = [
        ...Object.entries(query).map((row) => ['query', ...row] as const),
        ...Object.entries(body).map((row) => ['body', ...row] as const),
        ...Object.entries(answer).map((row) => ['answer', ...row] as const),
      ];
      for (const [place, field, since] of rows) {
        const newest = await operationOf(name, NEWEST);
        if (newest === undefined || !has(newest, place, field)) continue;
        const [at, before] = [await operationOf(name, since), await operationOf(name, under(since))];
        assert.ok(at !== undefined && has(at, place, field), `${name}: ${field} is not there at ${since}`);
        assert.ok(before === undefined || !has(before, place, field), `${name}: ${field} is there before ${since}`);
      }
    }
  });
});

function has(
  { parameters, requestBody, responses }: Operation,
  place: 'query' | 'body' | 'answer',
  field: string,
): boolean {
  if (place === 'query') return parameters.some((each) => each.in === 'query' && each.name === field);
  const { content } = (place === 'body' ? requestBody : responses['200']) ?? {};
  return hasField(content?.['application/json']?.schema, field.split('.'));
}

function hasField(tree: Tree | undefined, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined || tree === undefined) return tree !== undefined;
  const { properties = {}, items, patternProperties = {}, anyOf = [] } = tree;
  if (Object.hasOwn(properties, name)) return hasField(properties[name], rest);
  return [items, ...Object.values(patternProperties), ...anyOf].some((each) => hasField(each, [name, ...rest]));
}

function under(version: ApiVersion): ApiVersion {
  return `1.${Number(version.slice(2)) - 1}`;
}

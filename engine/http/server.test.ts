import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';

import { Type } from 'typebox';

import { systemClock } from '../lib/clock.ts';
import { openLog } from '../log.ts';
import { readSettings } from '../settings.ts';
import type { Endpoint } from './description/endpoints.ts';
import { PendingRequests } from './listening/pending-requests.ts';
import type { AddRoutes } from './route-table.ts';
import { buildServer } from './server.ts';
import type { Steps } from './versions/steps.ts';

const ENDPOINTS: readonly Endpoint[] = [
  { name: 'GET /old', method: 'GET', path: '/old', title: 'what was always there' },
  { name: 'GET /new/{id}', method: 'GET', path: '/new/{id}', title: 'what came later', since: '1.25' },
  { name: 'POST /checked/{id}', method: 'POST', path: '/checked/{id}', title: 'what is checked' },
  { name: 'POST /newer', method: 'POST', path: '/newer', title: 'what is being built', since: '1.30' },
];
const steps: Steps<unknown, { names: string[] }> = [
  { below: '1.30', response: ({ names }) => ({ names: [...names, 'below 1.30'] }) },
  { below: '1.25', status: 203, response: ({ names }) => ({ names: [...names, 'below 1.25'] }) },
];

let handled = 0;
const config = readSettings(['--max-api-version=1.40', '--default-api-version=1.25']);
const parts = { config, log: openLog('error') };
const listener = buildServer(
  parts,
  [
    (http) => {
      http.get('/old', { config: { steps }, handler: () => ({ names: ['old'] }) });
      http.get('/new/:ref', { handler: () => ({ names: ['new'] }) });
      http.post('/checked/:ref', {
        schema: {
          params: Type.Object({ ref: Type.String({ pattern: '^[a-z]+$' }) }),
          querystring: Type.Object({ n: Type.Optional(Type.Integer({ maximum: 9 })) }),
          body: Type.Object({ Name: Type.String() }),
        },
        handler: () => {
          handled += 1;
          return {};
        },
      });
    },
  ],
  new PendingRequests(systemClock),
  undefined,
  ENDPOINTS,
);
const server = createServer(listener).listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
after(() => server.close());

async function ask(method: 'GET' | 'POST', url: string): Promise<{ status: number; type: string; body: string }> {
  const answer = await fetch(`http://127.0.0.1:${port}${url}`, { method });
  return { status: answer.status, type: String(answer.headers.get('content-type')), body: await answer.text() };
}

test('an endpoint that is newer than the version of the client is refused in the words of dockerd', async () => {
  assert.deepEqual(await ask('GET', '/v1.24/new/x'), {
    status: 400,
    type: 'application/json',
    body: '{"message":"GET /new/id requires minimum API version 1.25"}',
  });
  assert.equal((await ask('GET', '/v1.25/new/x')).status, 200);
  assert.equal((await ask('GET', '/new/x')).status, 200);
});

test('a request is checked by all parts of the schema of its route before its handler sees it', async () => {
  const post = async (url: string, body: string): Promise<[number, string]> => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`http://127.0.0.1:${port}/v1.24${url}`, { method: 'POST', headers, body });
    return [answer.status, await answer.text()];
  };

  const params = await post('/checked/9', '{"Name":"x"}');
  const query = await post('/checked/x?n=10', '{"Name":"x"}');
  const body = await post('/checked/x', '{"Name":1}');
  const before = handled;
  const right = await post('/checked/x?n=9', '{"Name":"x"}');

  for (const [status, text, part] of [
    [...params, 'params field ref'],
    [...query, 'querystring field n'],
    [...body, 'body field Name'],
  ] as const) {
    assert.equal(status, 400, text);
    assert.match(text, new RegExp(`invalid ${part}`));
  }
  assert.deepEqual([before, handled, right[0]], [0, 1, 200]);
});

test('an endpoint without a route is not built yet, from its version on', async () => {
  assert.equal((await ask('POST', '/v1.29/newer')).status, 400);
  assert.deepEqual(await ask('POST', '/v1.30/newer'), {
    status: 501,
    type: 'application/json',
    body: '{"message":"what is being built is not implemented yet"}',
  });
});

test('an answer takes the steps down to the version of the client', async () => {
  const answers = await Promise.all(
    ['/v1.30/old', '/v1.29/old', '/v1.24/old'].map(async (url) => await ask('GET', url)),
  );

  assert.deepEqual(
    answers.map(({ status, body }) => [status, body]),
    [
      [200, '{"names":["old"]}'],
      [200, '{"names":["old","below 1.30"]}'],
      [203, '{"names":["old","below 1.30","below 1.25"]}'],
    ],
  );
});

test('clients from before 1.24 are refused as text', async () => {
  assert.deepEqual(await ask('GET', '/v1.23/nope'), {
    status: 404,
    type: 'text/plain; charset=utf-8',
    body: 'page not found\n',
  });
  // An unsupported version, however old, is JSON.
  assert.match((await ask('GET', '/v0.9/old')).body, /^\{"message":"client version 0\.9 is too old\. .*"\}$/);
  assert.match((await ask('GET', '/v1.11/old')).body, /^\{"message":"client version 1\.11 is too old\. .*"\}$/);
  assert.match((await ask('GET', '/v1.41/old')).body, /^\{"message":"client version 1\.41 is too new\. .*1\.40"\}$/);
});

test('the description of a version has the routes of the version', async () => {
  const pathsOf = async (url: string): Promise<string[]> =>
    Object.keys((JSON.parse((await ask('GET', url)).body) as { paths: object }).paths);

  assert.deepEqual(await pathsOf('/v1.24/openapi.json'), ['/old', '/checked/{ref}']);
  assert.deepEqual(await pathsOf('/openapi.json'), ['/old', '/new/{ref}', '/checked/{ref}']);
});

test('a route that the table does not know keeps the server from starting', () => {
  const stray: AddRoutes = (http) => http.get('/stray', { handler: () => '' });

  assert.throws(
    () => buildServer(parts, [stray], new PendingRequests(systemClock), undefined, ENDPOINTS),
    /GET \/stray is not in the table of endpoints/,
  );
});

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, suite, test } from 'node:test';

import { BothEngines, type Side } from './both-engines.ts';

/** Method and path; answers have the same status and place on both engines. */
const PATHS = [
  ['GET', '/networks/'],
  ['GET', '/volumes/'],
  ['GET', '/containers/'],
  ['GET', '/containers/json/'],
  ['GET', '/images/'],
  ['GET', '/images/json/'],
  ['GET', '/version/'],
  ['GET', '/_ping/'],
  ['GET', '/images//json'],
  ['GET', '/images//json?all=1'],
  ['GET', '//version'],
  ['GET', '/./version'],
  ['GET', '/images/../version'],
  ['GET', '/networks//'],
  ['POST', '/containers//create?name=x'],
  ['POST', '/containers/create/'],
  ['DELETE', '/containers//nope'],
  ['GET', '/containers/%2E%2E/json'],
  ['HEAD', '/_ping'],
  ['GET', '/nope'],
] as const;

/** Requests with the names of their headers as docker spells them. */
const SPELLED = [
  '/_ping',
  '/version',
  '/nope',
  '/containers/json',
  '/containers/web/archive?path=/etc',
  '/events?until=1',
];

type Answer = { status: number; location: string | undefined; names: string[] };

async function answerOf({ socketPath }: Side, method: string, path: string): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = request({ socketPath, method, path, agent: false }, (response) => {
    response.resume();
    const { statusCode: status = 0, headers, rawHeaders } = response;
    resolve({ status, location: headers.location, names: rawHeaders.filter((_, at) => at % 2 === 0) });
  });
  sent.on('error', reject).end();
  return await promise;
}

suite('paths and names of headers are dockerd’s', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start();
    const body = { Image: 'busybox', Cmd: ['true'] };
    await engines.both(async ({ api }) => await api.post('/containers/create?name=web', body));
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const version of ['', '/v1.24']) {
    for (const [method, path] of PATHS) {
      test(`${method} ${version}${path}`, async () => {
        const { ours, theirs } = await engines.both(async (side) => await answerOf(side, method, version + path));

        assert.deepEqual([ours.status, ours.location], [theirs.status, theirs.location]);
      });
    }
  }

  for (const path of SPELLED) {
    test(`the headers of GET ${path}`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await answerOf(side, 'GET', `/v1.24${path}`));

      assert.ok(ours.names.includes('Ostype'), ours.names.join());
      const unknown = ours.names.filter((name) => !theirs.names.includes(name));
      const known = unknown.filter((name) => theirs.names.some((one) => one.toLowerCase() === name.toLowerCase()));
      assert.deepEqual(known, [], 'headers of both engines have one spelling');
    });
  }
});

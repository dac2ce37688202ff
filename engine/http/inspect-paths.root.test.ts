import assert from 'node:assert/strict';
import { request, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Answer = Readonly<{ status: number; headers: IncomingHttpHeaders; body: string }>;

/** A header that makes a request differ without changing its answer. */
const WITH_ORIGIN = { origin: 'http://localhost' };

suite('GET /containers/{id}/json by all its paths', () => {
  let engine: TestEngine;
  let id: string;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--api-cors-header=*'] });
    id = await engine.create(['true'], {}, 'here');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    const sent = request({ socketPath: engine.socketPath, path, method, headers: { host: 'x', ...headers } }).end();
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    sent.on('error', reject).on('response', (response) => {
      text(response).then((body) => resolve({ status: response.statusCode!, headers: response.headers, body }), reject);
    });
    return await promise;
  }

  const paths = ['/containers/ID/json', '/v1.24/containers/ID/json', '/v1.20/containers/here/json', '/v1.24/x'];
  for (const path of [
    ...paths,
    '/v1.24/containers/nope/json',
    '/v9.99/containers/ID/json',
    '/containers//json',
    '/containers/here/x/json',
    '/containers/%68ere/json',
    '/containers/here/json?size=1',
  ]) {
    test(`${path}: an Origin does not change the answer`, async () => {
      const whole = path.replace('ID', id);

      const [plain, usual] = [await ask(whole), await ask(whole, WITH_ORIGIN)];

      delete plain.headers.date;
      delete plain.headers['x-request-id'];
      delete usual.headers.date;
      delete usual.headers['x-request-id'];
      assert.deepEqual(plain, usual);
    });
  }

  test('an inspect after a rename has the new name', async () => {
    for (const name of ['one', 'two', 'three']) {
      await engine.post(`/containers/${id}/rename?name=${name}`);
      const { body } = await ask(`/containers/${id}/json`);
      assert.equal((JSON.parse(body) as Inspect).Name, `/${name}`);
    }
    await engine.post(`/containers/${id}/rename?name=here`);
  });

  test('HEAD is no GET, and the docker command line reads it', async () => {
    assert.equal((await ask(`/containers/${id}/json`, {}, 'HEAD')).status, 404);
    const inspected = await engine.docker('inspect', 'here');
    assert.equal(inspected.code, 0, inspected.stderr);
  });
});

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** As a client names its version. */
const PREFIXES = ['/v1.24', '/v1.25', ''];

suite('a daemon that serves more versions', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--max-api-version=1.25', '--min-api-version=1.20'] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** Answers to a client of each prefix. */
  async function found<T>(ask: (api: Api) => Promise<T>, prefixes = PREFIXES): Promise<T[]> {
    const answers: T[] = [];
    for (const prefix of prefixes) {
      using api = new Api(engine.socketPath, prefix);
      answers.push(await ask(api));
    }
    return answers;
  }

  test('says so wherever clients look', async () => {
    const { headers, body } = await engine.get<{ ApiVersion: string; MinAPIVersion: string }>('/version');

    assert.equal(headers['api-version'], '1.25');
    assert.deepEqual([body.ApiVersion, body.MinAPIVersion], ['1.25', '1.20']);
    const statuses = await found(
      async (api) => (await api.get('/info')).status,
      ['/v1.19', '/v1.20', '/v1.25', '/v1.26'],
    );
    assert.deepEqual(statuses, [400, 200, 200, 400]);
    assert.doesNotMatch(engine.log, /are served, but not complete/);
  });

  test('the automatic removal of a container is for clients from 1.25 on', async () => {
    const removals = await found(async (api) => {
      const body = { Image: 'busybox', Cmd: ['true'], HostConfig: { AutoRemove: true } };
      const { Id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
      return (await api.get<{ HostConfig: { AutoRemove: boolean } }>(`/containers/${Id}/json`)).body.HostConfig
        .AutoRemove;
    });

    assert.deepEqual(removals, [false, true, true]);
  });

  test('a container in the wrong state is 500 below 1.25, then 409; a node in no cluster 406, then 503', async () => {
    await engine.create(['true'], {}, 'created');

    const statuses = await found(async (api) => [
      (await api.post('/containers/created/kill')).status,
      (await api.post('/containers/created/pause')).status,
      (await api.get('/nodes')).status,
    ]);

    assert.deepEqual(statuses, [
      [500, 500, 406],
      [409, 409, 503],
      [409, 409, 503],
    ]);
  });

  test('the size of an exec is set with 201 below 1.25, then with 200', async () => {
    const id = await engine.run(['sleep', '1000']);
    const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['cat'], Tty: true });

    const statuses = await found(async (api) => (await api.post(`/exec/${body.Id}/resize?h=20&w=60`)).status);

    assert.deepEqual(statuses, [201, 200, 200]);
  });
});

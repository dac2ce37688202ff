import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxLayer } from '@gantry/testing/busybox-image.ts';
import type { Dockerd } from '@gantry/testing/dockerd.ts';
import { EnginesBesideRegistries } from '@gantry/testing/registries/engines-beside.ts';
import type { Registries } from '@gantry/testing/registries/registries.ts';
import type { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from './compared.ts';

const OPEN = '127.0.0.1:5000';
const GUARDED = '127.0.0.1:5002';
const PASSWORD = 'secret-of-alice';
const SIGNED = { Authorization: `Basic ${Buffer.from(`alice:${PASSWORD}`).toString('base64')}` };

const config = (password: string): Record<string, string> => ({
  'X-Registry-Config': Buffer.from(JSON.stringify({ [GUARDED]: { username: 'alice', password } })).toString('base64'),
});

suite('bases that a build pulls', { concurrency: false }, () => {
  let beside: EnginesBesideRegistries;
  let engine: TestEngine;
  let dockerd: Dockerd;
  let registries: Registries;
  const apis = (): Api[] => [engine, dockerd.api];

  before(async () => {
    beside = await EnginesBesideRegistries.start();
    ({ engine, dockerd, registries } = beside);
    await registries.registry(5000);
    await registries.registry(5002, { users: { alice: PASSWORD } });
    await registries.putImage(`${GUARDED}/v2/base`, '1', [busyboxLayer()], { headers: SIGNED });
  });
  after(async () => {
    await beside[Symbol.asyncDispose]();
  });

  /** Messages of a build without ids, progress and the order of downloads. */
  async function said(api: Api, from: string, query: string, headers: Record<string, string> = {}): Promise<unknown> {
    const context = contextOf({ Dockerfile: `FROM ${from}\nENV A=b\n` });
    const { status, message, lines } = await build(api, query, context, headers);
    const told = lines
      .filter(({ status: each = '' }) => !/^(Downloading|Extracting|Verifying|Waiting|Download complete)/.test(each))
      .map(({ stream, error, status: each }) =>
        (stream ?? error ?? each ?? '').replaceAll(/\b[0-9a-f]{12}\b/g, '<id>'),
      );
    return { status, message, told: told.join('') };
  }

  for (const [what, headers] of [
    ['no credentials', {}],
    ['a wrong password', config('wrong')],
    ['what is no header', { 'X-Registry-Config': '?' }],
    [
      'those of another registry',
      { 'X-Registry-Config': Buffer.from('{"other:1":{"username":"alice"}}').toString('base64') },
    ],
    ['the right password', config(PASSWORD)],
  ] as const) {
    test(`with ${what} are answered as by dockerd`, async () => {
      const [ours, theirs] = await Promise.all(
        apis().map(async (api) => await said(api, `${GUARDED}/base:1`, '', headers)),
      );

      assert.deepEqual(ours, theirs);
      assert.doesNotMatch(JSON.stringify(ours) + engine.log, /secret-of-alice|wrong"/);
    });
  }

  test('are pulled again with pull=1, and only then, as by dockerd', async () => {
    await registries.putImage(`${OPEN}/v2/moving`, '1', [busyboxLayer()], { config: { Labels: { n: '1' } } });
    const first = await Promise.all(apis().map(async (api) => await said(api, `${OPEN}/moving:1`, 't=built')));
    await registries.putImage(`${OPEN}/v2/moving`, '1', [busyboxLayer()], { config: { Labels: { n: '2' } } });
    const labels: unknown[] = [];
    const later = [];
    for (const query of ['t=built', 't=built&pull=1']) {
      later.push(await Promise.all(apis().map(async (api) => await said(api, `${OPEN}/moving:1`, query))));
      const { body } = await engine.get<{ Config: { Labels: object } }>('/images/built/json');
      labels.push(body.Config.Labels);
    }

    for (const [ours, theirs] of [first, ...later]) assert.deepEqual(ours, theirs);
    assert.deepEqual(labels, [{ n: '1' }, { n: '2' }]);
  });
});

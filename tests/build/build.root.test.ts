import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { rows, type BuildRow } from './build-rows.ts';
import { build, contextOf, told, type Files } from './compared.ts';

const PLAIN = contextOf({
  'in/': { type: 'directory', mode: 0o700, uid: 5 },
  'in/x': { content: 'x', uid: 6, mode: 0o4755 },
});

const REPEATED = rows.filter(({ why }) => ['settings', 'RUN', 'COPY of folders', 'arguments', 'stages'].includes(why));

suite('a build', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  before(async () => {
    [engine, dockerd] = await Promise.all([TestEngine.start(), Dockerd.start()]);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  });
  after(async () => await Promise.all([engine[Symbol.asyncDispose](), dockerd[Symbol.asyncDispose]()]));

  async function seen(api: Api, { file, files = {}, query = '' }: BuildRow): Promise<unknown> {
    const more: Files = file.includes('plain.tar') ? { 'plain.tar': { content: PLAIN } } : {};
    const own: Files = file === '' ? {} : { Dockerfile: file };
    return await told(api, await build(api, query, contextOf({ ...own, ...files, ...more })));
  }

  for (const row of rows.filter(({ differs }) => differs === undefined)) {
    test(`with ${row.why} is as dockerd's`, async () => {
      const [ours, theirs] = [await seen(engine, row), await seen(dockerd.api, row)];

      assert.deepEqual(ours, theirs);
    });
  }

  for (const { why, differs, ...row } of rows) {
    if (differs === undefined) continue;
    test(`with ${why} differs from dockerd's: ${differs.why}`, async () => {
      const { status, message } = (await seen(engine, { why, ...row })) as { status: number; message: string };

      assert.equal(status, differs.status);
      assert.ok(message.startsWith(differs.says), message);
    });
  }

  test('that is repeated comes from the cache, as in dockerd', async () => {
    for (const row of REPEATED) {
      assert.deepEqual(await seen(engine, row), await seen(dockerd.api, row));
    }
  });

  test('takes steps of images that are named as a cache, and of no others, as in dockerd', async () => {
    const file = 'FROM busybox\nLABEL a=from\nCOPY x /from\nRUN echo from >/from2\nCMD ["x"]\n';
    const context = (more = ''): Buffer => contextOf({ Dockerfile: file + more, x: 'x' });
    const said = async (api: Api): Promise<unknown> => {
      const answers = [];
      answers.push(await told(api, await build(api, 't=from:1', context())));
      const { raw } = await api.get('/images/from:1/get');
      await api.delete('/images/from:1');
      await api.post('/images/load?quiet=1', raw);
      const from = (name: string): string => `cachefrom=${encodeURIComponent(JSON.stringify([name]))}`;
      answers.push(
        await told(api, await build(api, from('nothing:1'), contextOf({ Dockerfile: 'FROM busybox\nLABEL b=none' }))),
      );
      answers.push(await told(api, await build(api, from('from:1'), context())));
      answers.push(await told(api, await build(api, from('from:1'), context('LABEL more=here'))));
      answers.push(await told(api, await build(api, from('busybox'), context())));
      return answers;
    };

    assert.deepEqual(await said(engine), await said(dockerd.api));
  });
});

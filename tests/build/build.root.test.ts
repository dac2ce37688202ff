import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';

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

const ARCHIVES: Files = {
  'plain.tar': { content: PLAIN },
  'plain.tar.gz': { content: gzipSync(PLAIN) },
  'plain.tar.bz2': { content: execFileSync('bzip2', ['-c'], { input: PLAIN }) },
  'plain.tar.xz': { content: execFileSync('xz', ['-c'], { input: PLAIN }) },
};

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
    const more: Files = file.includes('plain.tar') ? ARCHIVES : {};
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

  const file =
    'FROM busybox\nRUN echo first\nARG A=1\nARG HTTP_PROXY\nRUN echo "$A"\nCOPY d /d\nENV B=$A\nADD e /e\nRUN echo last';
  const files: Files = {
    'd/x': { content: 'x', mode: 0o644, mtime: 1000 },
    'd/l': { type: 'symlink', linkName: 'x' },
    e: { content: 'e', mode: 0o644, mtime: 1000 },
    unused: '1',
  };
  const argument = (args: object): string => `buildargs=${encodeURIComponent(JSON.stringify(args))}`;
  const changes: readonly (readonly [what: string, files: Files, query?: string, file?: string])[] = [
    ['nothing', files],
    ['times', { ...files, 'd/x': { content: 'x', mode: 0o644, mtime: 2000 }, e: { content: 'e', mode: 0o644 } }],
    ['a file that no step names', { ...files, unused: '2' }],
    ['a content', { ...files, 'd/x': { content: 'y', mode: 0o644 } }],
    ['a mode', { ...files, e: { content: 'e', mode: 0o755 } }],
    ['an owner', { ...files, e: { content: 'e', mode: 0o644, uid: 7 } }],
    ['the target of a link', { ...files, 'd/l': { type: 'symlink', linkName: '../e' } }],
    ['a further file', { ...files, 'd/more': 'more' }],
    ['an argument', files, argument({ A: '2' })],
    ['a predefined argument', files, argument({ HTTP_PROXY: 'http://p' })],
    ['the use of the cache', files, 'nocache=1'],
    ['an instruction', files, '', file.replace('ENV B=$A', 'ENV B=${A}x')],
  ];
  for (const [what, changed, query = '', changedFile = file] of changes) {
    test(`with a changed ${what} takes from the cache as dockerd does`, async () => {
      const said = async (api: Api): Promise<unknown> => {
        const first = `${file}\nLABEL of="${what}"`; // images of its own
        await build(api, '', contextOf({ Dockerfile: first, ...files }));
        return await told(api, await build(api, query, contextOf({ Dockerfile: changedFile, ...changed })));
      };

      assert.deepEqual(await said(engine), await said(dockerd.api));
    });
  }

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

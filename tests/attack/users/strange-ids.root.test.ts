import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';
import { usersMayHaveNamespaces } from '@gantry/testing/users/rootless.ts';

/** A map has 65,536 ids. */
const ID = 70_000;
const TAR = { headers: { 'Content-Type': 'application/x-tar' } };
const PREFIX = 'unable to convert uid/gid chown string to host mapping: 70000:1 is ';
const MODES = { 'a map': { flags: ['--userns-remap=default'] }, 'the engine of an ordinary user': { rootless: true } };

for (const [mode, options] of Object.entries(MODES)) {
  if ('rootless' in options && !usersMayHaveNamespaces()) continue;
  suite(`ids beyond ${mode}`, { concurrency: false }, () => {
    let engine: TestEngine;
    before(async () => {
      engine = await TestEngine.start({ ...options, version: '1.41' });
    });
    after(async () => await engine[Symbol.asyncDispose]());

    const archives = {
      file: new TarWriter().add({ name: 'of/a/stranger', content: 'x', uid: ID }).end(),
      link: new TarWriter().add({ name: 'of/a/stranger', type: 'symlink', linkName: '/x', gid: ID }).end(),
    };
    const said = {
      file: '"of/a/stranger" has the user id 70000, which is beyond the map of users (/etc/subuid)',
      link: '"of/a/stranger" has the group id 70000, which is beyond the map of groups (/etc/subgid)',
    };
    const refusals = async (send: (archive: Buffer) => Promise<{ status: number; raw: Buffer }>): Promise<void> => {
      for (const kind of ['file', 'link'] as const) {
        const { status, raw } = await send(archives[kind]);
        assert.equal(status, 500);
        assert.deepEqual(JSON.parse(raw.toString()), { message: said[kind] });
      }
    };
    const build = async (lines: string, files: Readonly<Record<string, Buffer | string>>): Promise<string> => {
      const tar = new TarWriter().add({ name: 'Dockerfile', content: lines });
      tar.add({ name: 'null', type: 'charDevice', major: 1, minor: 3 }); // left out where no device can be made
      for (const [name, content] of Object.entries(files)) tar.add({ name, content, uid: ID });
      return (await engine.post('/build?nocache=1&forcerm=1', tar.end(), TAR)).raw.toString();
    };

    test('an image with them is refused with the file and the id', async () => {
      await refusals(async (layer) => {
        return await engine.post('/images/load?quiet=1', imageArchive([busyboxLayer(), layer], ['strange:1']));
      });
      await refusals(async (layer) => await engine.post('/images/create?fromSrc=-', layer));
      assert.equal((await engine.get('/images/strange:1/json')).status, 404);
    });

    test('an archive with them is refused in a container and its volume, running or not', async () => {
      const id = await engine.create(['sleep', '1000'], { HostConfig: { Binds: ['kept:/v'] } });
      for (const runs of [false, true]) {
        if (runs) assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
        for (const path of ['/home', '/v']) {
          const put = async (body: Buffer): Promise<{ status: number; raw: Buffer }> =>
            await engine.request('PUT', `/containers/${id}/archive?path=${path}`, { body });
          await refusals(put);
          const within = new TarWriter().add({ name: 'of/a/friend', content: 'x', uid: 65_535 }).end();
          assert.equal((await put(within)).status, 200);
        }
      }
      await engine.delete(`/containers/${id}?force=1&v=1`);
    });

    test('a build is refused that extracts or gives them, and a context may have them', async () => {
      const added = await build('FROM busybox\nADD a.tar /b/\n', { 'a.tar': archives.file });
      const given = await build(`FROM busybox\nCOPY --chown=${ID}:1 own /b/\n`, { own: 'x' });
      const copied = await build('FROM busybox\nCOPY . /b/\nRUN stat -c own:%u /b/own\n', { own: 'x' });

      assert.match(added, /of\/a\/stranger\\" has the user id 70000, which is beyond/);
      assert.ok(given.includes(`${PREFIX}the user id 70000, which is beyond the map of users`), given);
      assert.match(copied, /own:0\\n/);
    });

    test('a process with them is refused with the id', async () => {
      const id = await engine.create(['id'], { User: String(ID) });
      const { status, raw } = await engine.post(`/containers/${id}/start`);
      assert.equal(status, 500);
      assert.match(raw.toString(), /70000/);
      await engine.delete(`/containers/${id}?force=1`);
    });
  });
}

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const TAR = { headers: { 'Content-Type': 'application/x-tar' } };

suite('an archive does not replace mounts of a container', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function put(id: string, path: string, name: string, content: string): Promise<readonly [number, string]> {
    const body = new TarWriter().add({ name, content }).end();
    const { status, raw } = await engine.request('PUT', `/containers/${id}/archive?path=${path}`, { ...TAR, body });
    return [status, raw.toString()];
  }

  async function contentOf(id: string, path: string): Promise<string | undefined> {
    const { raw } = await engine.get(`/containers/${id}/archive?path=${path}`);
    return [...tarList(raw).values()][0]?.content.toString();
  }

  test('below a folder', async () => {
    const id = await engine.create(['true'], { HostConfig: { Binds: ['volume:/data/deep/v'] } });
    assert.equal((await put(id, '/data/deep/v', 'precious', 'kept'))[0], 200);

    const [status, message] = await put(id, '/', 'data', 'a file now');

    assert.deepEqual([status, message.includes('is a mount, or has one below it')], [400, true]);
    assert.equal(await contentOf(id, '/data/deep/v/precious'), 'kept');
  });

  test('a file, running or not', async () => {
    const [running, ended] = [await engine.run(['sleep', '1000']), await engine.run(['true'])];
    await engine.wait(ended);

    for (const id of [running, ended]) {
      const before = await contentOf(id, '/etc/hosts');
      const [status, message] = await put(id, '/etc', 'hosts', 'forged');

      assert.deepEqual([status, message.includes('is a mount, or has one below it')], [400, true]);
      assert.equal(await contentOf(id, '/etc/hosts'), before);
      assert.match(before ?? '', /localhost/);
    }
  });
});

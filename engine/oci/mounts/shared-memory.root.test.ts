import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const MB = 1024 * 1024;

suite('the shared memory of another container', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function said(script: string, HostConfig: object): Promise<string> {
    const id = await engine.run(['sh', '-c', script], { HostConfig });
    await engine.wait(id);
    const { stdout, stderr } = await engine.output(id);
    return (stdout + stderr).trim();
  }

  const shared = async (donor: object, joiner = 'true'): Promise<[number, string]> => {
    const owner = await engine.run(['sleep', '1000'], { HostConfig: donor });
    const HostConfig = { IpcMode: `container:${owner}`, ShmSize: MB };
    const id = await engine.create(['sh', '-c', joiner], { HostConfig });
    const started = await engine.post<{ message: string }>(`/containers/${id}/start`);
    if (started.status !== 204) return [started.status, started.body.message.replaceAll(owner, 'OWNER')];
    return [await engine.wait(id), (await engine.output(id)).stdout.trim()];
  };

  test('a shareable one is that of the other container, with its size', async () => {
    const [code, text] = await shared({ ShmSize: 3 * MB }, 'df -k /dev/shm | tail -1');

    assert.equal(code, 0);
    assert.match(text, /\b3072\b/);
  });

  test('writes of one container are read by the other, through a third', async () => {
    const owner = await engine.run(['sh', '-c', 'while [ ! -e /dev/shm/go ]; do sleep 0.02; done; ls /dev/shm']);
    const middle = await engine.run(['sleep', '1000'], { HostConfig: { IpcMode: `container:${owner}` } });

    await said('touch /dev/shm/go', { IpcMode: `container:${middle}` });

    assert.equal(await engine.wait(owner), 0);
    assert.equal((await engine.output(owner)).stdout, 'go\n');
  });

  test("the host's can be had through a container that has it", async () => {
    const [code, text] = await shared({ IpcMode: 'host' }, 'df -k /dev/shm | tail -1');

    assert.equal(code, 0);
    assert.equal(
      text.split(/\s+/)[1],
      (await engine.onHost(['df', '-k', '--output=size', '/dev/shm'])).split(/\s+/)[1],
    );
  });

  for (const IpcMode of ['private', 'none']) {
    test(`${IpcMode} is not shared`, async () => {
      assert.deepEqual(await shared({ IpcMode }), [
        500,
        "can't join IPC of container OWNER: non-shareable IPC (hint: use IpcMode:shareable for the donor container)",
      ]);
    });
  }

  test('none has no /dev/shm', async () => {
    assert.equal(await said('[ -e /dev/shm ] || echo nothing', { IpcMode: 'none' }), 'nothing');
  });

  test('the other container has to run', async () => {
    const owner = await engine.create(['true']);
    const id = await engine.create(['true'], { HostConfig: { IpcMode: `container:${owner}` } });

    const { status, body } = await engine.post<{ message: string }>(`/containers/${id}/start`);

    const message = `can't join IPC of container ${owner}: container ${owner} is not running`;
    assert.deepEqual([status, body.message], [500, message]);
  });
});

import assert from 'node:assert/strict';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };

suite('an image with lost files', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => (engine = await TestEngine.start()));
  after(async () => await engine[Symbol.asyncDispose]());

  const layers = (): string => join(engine.dataRoot, 'layers');
  const blobs = (): string => join(engine.dataRoot, 'blobs/skeletons');
  const folders = (): string[] => readdirSync(layers()).filter((name) => !['.trash', 'common', 'init'].includes(name));

  async function runs(id: string): Promise<void> {
    assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
    assert.equal(await engine.wait(id), 0);
  }

  test('says so at the start of the daemon and of a container, and is whole when it is loaded again', async () => {
    const id = await engine.create(['true']);
    await engine.kill('SIGTERM');
    const [folder] = folders();
    rmSync(join(layers(), folder!), { recursive: true });

    await engine.startAgain();

    const line = engine.log.split('\n').find((one) => one.includes('files of an image are missing'));
    assert.match(line ?? '', new RegExp(`busybox:latest.*${folder}`));
    const refused = await engine.post<Message>(`/containers/${id}/start`);
    assert.equal(refused.status, 500);
    assert.match(
      refused.body.message,
      new RegExp(`a layer of its image is missing: .*${folder}. Load the image again`),
    );
    await engine.loadBusybox();
    assert.deepEqual(folders(), [folder]);
    await runs(id);
  });

  test('cannot be saved without its archive, and says so before the first byte', async () => {
    const whole = await engine.get('/images/busybox/get');
    const [blob] = readdirSync(blobs());
    rmSync(join(blobs(), blob!));

    for (const path of ['/images/busybox/get', '/images/get?names=busybox']) {
      const { status, body } = await engine.get<Message>(path);
      assert.equal(status, 500);
      assert.match(
        body.message,
        new RegExp(`a layer of the image sha256:.* is missing: .*${blob}. Load the image again`),
      );
    }
    const id = await engine.create(['true']);
    await runs(id); // nothing else needs the archive
    await engine.loadBusybox();

    assert.deepEqual((await engine.get('/images/busybox/get')).raw, whole.raw);
  });
});

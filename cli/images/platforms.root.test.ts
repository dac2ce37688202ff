import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { NEWEST } from '@gantry/engine/http/versions/api-version.ts';
import { refused as refusedBy, said as saidBy } from '@gantry/testing/clients/own-client.ts';
import { putMultiPlatform, type MultiPlatform } from '@gantry/testing/registries/multi-platform.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const NAME = '127.0.0.1:5000/multi:1';
const ARM = 'linux/arm64';

suite('--platform of commands for images', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  let index: MultiPlatform;
  let archive: string;
  before(async () => {
    engine = await TestEngine.start({ image: false, version: NEWEST, flags: ['--bridge=none'] });
    registries = await Registries.start(engine.netns);
    await registries.registry(5000);
    index = await putMultiPlatform(registries, '127.0.0.1:5000/v2/multi', '1');
    archive = join(engine.directory, 'saved.tar');
    for (const platform of [`${index.host.os}/${index.host.architecture}`, ARM]) {
      await said('pull', '-q', '--platform', platform, NAME);
    }
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const said = async (...words: string[]): Promise<string> => await saidBy(engine, ...words);
  const architectures = async (): Promise<string[]> => {
    type Listed = { Manifests: { Available: boolean; ImageData?: { Platform: { architecture: string } } }[] };
    const { body } = await engine.get<Listed[]>('/images/json?manifests=1');
    const here = body.flatMap(({ Manifests }) => Manifests).filter(({ Available }) => Available);
    return here.map(({ ImageData }) => ImageData!.Platform.architecture).toSorted();
  };

  test('save, rmi and load take one platform of several', async () => {
    const all = await architectures();
    await said('save', '--platform', ARM, '-o', archive, NAME);
    await said('rmi', '-f', '--platform', ARM, NAME);
    const without = await architectures();
    await said('load', '-q', '--platform', ARM, '-i', archive);

    assert.deepEqual(all, ['arm64', index.host.architecture].toSorted());
    assert.deepEqual(without, [index.host.architecture]);
    assert.ok((await architectures()).includes('arm64'));
  });

  test('history shows the platform', async () => {
    await said('pull', '-q', '--platform', ARM, NAME);
    const { id } = index.images.find(({ platform }) => platform.architecture === 'arm64')!;

    const [top] = (await said('history', '-q', '--no-trunc', '--platform', ARM, NAME)).split('\n');

    assert.equal(top, id);
  });

  test('push sends the manifest of the platform', async () => {
    await said('tag', NAME, '127.0.0.1:5000/pushed:1');
    await said('push', '-q', '--platform', ARM, '127.0.0.1:5000/pushed:1');

    const headers = {
      Accept: 'application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json',
    };
    const url = 'http://127.0.0.1:5000/v2/pushed/manifests/1';
    const { headers: answered } = await registries.request('GET', url, { headers });
    const { digest } = index.images.find(({ platform }) => platform.architecture === 'arm64')!;
    assert.equal(answered['docker-content-digest'], digest);
  });

  test('a missing platform and an invalid one are refused', async () => {
    assert.match((await refusedBy(engine, 'history', '--platform', 'linux/riscv64', NAME)).stderr, /riscv64/);
    assert.match((await refusedBy(engine, 'save', '--platform', 'linux', NAME)).stderr, /invalid platform "linux"/);
  });
});

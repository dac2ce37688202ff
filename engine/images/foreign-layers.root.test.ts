import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { FOREIGN_LAYERS, type ForeignLayer } from '@gantry/testing/archives/foreign-layers.ts';
import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const REGISTRY = '127.0.0.1:5000';
const SCRIPT = 'for file in "$@"; do echo "$file $(cat "$file")"; done';

suite('layers of other programs', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;

  before(async () => {
    engine = await TestEngine.start();
    registries = await Registries.start(engine.netns);
    await registries.registry(5000);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  async function assertRuns(image: string, files: ForeignLayer['files'], folder = ''): Promise<void> {
    const paths = Object.keys(files).map((path) => `${folder}/${path}`);
    const id = await engine.run(['sh', '-c', SCRIPT, 'sh', ...paths], { Image: image });

    assert.equal(await engine.wait(id), 0);
    const { stdout } = await engine.output(id);
    const expected = Object.entries(files).map(([path, content]) => `${folder}/${path} ${content}\n`);
    assert.equal(stdout, expected.join(''));
    await engine.delete(`/containers/${id}`);
  }

  async function load(archive: Buffer): Promise<void> {
    const answer = await engine.post('/images/load?quiet=1', archive);
    assert.equal(answer.status, 200, answer.raw.toString());
  }

  for (const [index, { tool, archive, files }] of FOREIGN_LAYERS.entries()) {
    const name = `foreign-${index}`;

    test(`a layer as ${tool} writes it is loaded, saved byte for byte, and runs`, async () => {
      await load(imageArchive([busyboxLayer(), archive], [`${name}:1`]));
      await assertRuns(`${name}:1`, files);

      const saved = await engine.get(`/images/${name}:1/get`);

      const layers = [...tarList(saved.raw).values()].filter(({ path }) => path.endsWith('/layer.tar'));
      assert.ok(layers.some(({ content }) => content.equals(archive)));
    });

    test(`a layer as ${tool} writes it is pulled, and runs`, async () => {
      await registries.putImage(`${REGISTRY}/v2/${name}`, '2', [busyboxLayer(), archive]);

      const pulled = await engine.post(`/images/create?fromImage=${REGISTRY}/${name}&tag=2`);

      assert.doesNotMatch(pulled.raw.toString(), /"error"/);
      await assertRuns(`${REGISTRY}/${name}:2`, files);
    });

    test(`a build context as ${tool} writes it is built`, async () => {
      const buildfile = new TarWriter().add({ name: '/Dockerfile', content: 'FROM busybox\nCOPY . /context/\n' });
      const context = Buffer.concat([archive.subarray(0, -1024), buildfile.end()]);

      const built = await engine.post(`/build?t=${name}:3`, context, {
        headers: { 'Content-Type': 'application/x-tar' },
      });

      assert.equal(built.status, 200, built.raw.toString());
      assert.doesNotMatch(built.raw.toString(), /"error"/);
      await assertRuns(`${name}:3`, files, '/context');
    });
  }

  test('a file below an ignored folder stays out of a context also by its second name', async () => {
    const context = new TarWriter()
      .add({ name: 'Dockerfile', content: 'FROM busybox\nCOPY . /context/\nRUN ! test -e /context/real/secret\n' })
      .add({ name: '.dockerignore', content: 'real/secret\n' })
      .add({ name: 'real/', type: 'directory' })
      .add({ name: 'link', type: 'symlink', linkName: '/real' })
      .add({ name: '/link/../link/secret', content: 'secret' });

    const built = await engine.post('/build', context.end(), { headers: { 'Content-Type': 'application/x-tar' } });

    assert.equal(built.status, 200);
    assert.doesNotMatch(built.raw.toString(), /"error"/);
  });

  test('a build context with a name that leads out is refused', async () => {
    const context = new TarWriter().add({ name: 'Dockerfile', content: 'FROM busybox\n' }).add({ name: 'a/../../b' });

    const built = await engine.post<{ message: string }>('/build', context.end());

    assert.equal(built.status, 400);
    assert.match(built.body.message, /the name "a\/..\/..\/b" leads out of the root/);
  });
});

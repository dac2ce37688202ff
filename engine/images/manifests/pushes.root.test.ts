import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { putMultiPlatform, type MultiPlatform } from '@gantry/testing/registries/multi-platform.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Line = { status?: string; error?: string; aux?: Record<string, unknown> };

const FROM = '127.0.0.1:5000';
const TO = '127.0.0.1:5001';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const ARM = { os: 'linux', architecture: 'arm64' };

suite('pushes of several platforms', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  let index: MultiPlatform;
  let attested: MultiPlatform;
  before(async () => {
    engine = await TestEngine.start({ image: false, version: '1.55', flags: ['--bridge=none'] });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await registries.registry(5001);
    index = await putMultiPlatform(registries, `${FROM}/v2/multi`, '1', { isAttested: false });
    attested = await putMultiPlatform(registries, `${FROM}/v2/attested`, '1', { content: 'attested' });
    for (const name of ['multi', 'attested']) await pull(`${FROM}/${name}`);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  async function pull(name: string, platform = ''): Promise<void> {
    const { raw } = await engine.post(`/images/create?fromImage=${name}&tag=1&platform=${platform}`);
    assert.doesNotMatch(raw.toString(), /error/);
  }

  async function push(from: string, to: string, platform?: object): Promise<Line[]> {
    await engine.post(`/images/${from}:1/tag?repo=${TO}/${to}&tag=1`);
    const query = platform === undefined ? '' : `&platform=${encodeURIComponent(JSON.stringify(platform))}`;
    const headers = { 'X-Registry-Auth': Buffer.from('{}').toString('base64') };
    const { raw } = await engine.post(`/images/${TO}/${to}/push?tag=1${query}`, undefined, { headers });
    const lines = raw.toString().trim().split('\n');
    return lines.map((line) => JSON.parse(line) as Line);
  }

  async function pushedTo(name: string): Promise<{ digest: string; mediaType: string }> {
    const headers = {
      accept: 'application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json',
    };
    const { headers: told } = await registries.request('GET', `http://${TO}/v2/${name}/manifests/1`, { headers });
    return { digest: told['docker-content-digest'] ?? '', mediaType: told['content-type'] ?? '' };
  }

  const manifestOf = (architecture: string, of = index): string =>
    of.images.find(({ platform }) => platform.architecture === architecture)!.digest;

  test('an index of which one platform is here: its manifest, byte for byte', async () => {
    const lines = await push(`${FROM}/multi`, 'part');

    const { digest } = await pushedTo('part');
    assert.equal(digest, manifestOf(index.host.architecture));
    const { aux } = lines.find((line) => line.aux?.manifestPushedInsteadOfIndex === true) ?? {};
    const { originalIndex, selectedManifest } = aux as Record<string, { digest: string }>;
    assert.deepEqual([originalIndex!.digest, selectedManifest!.digest], [index.digest, digest]);
    const size = index.images.at(-1)!.size;
    assert.equal(lines.at(-2)?.status, `1: digest: ${digest} size: ${size}`);
    const { body } = await engine.get<{ RepoDigests: string[] }>(`/images/${TO}/part:1/json`);
    assert.ok(body.RepoDigests.every((name) => name.endsWith(index.digest)));
  });

  test('a platform that is not here: an error in the stream', async () => {
    const lines = await push(`${FROM}/multi`, 'missing', ARM);

    const text = `image with reference ${TO}/missing:1 was found but does not provide the specified platform (linux/arm64)`;
    assert.equal(lines.at(-1)?.error, text);
    assert.equal((await pushedTo('missing')).digest, '');
  });

  test('one platform of several, and the whole index once all are here', async () => {
    for (const name of ['multi', 'attested']) {
      for (const { platform } of index.images) await pull(`${FROM}/${name}`, `linux/${platform.architecture}`);
    }

    await push(`${FROM}/multi`, 'one', ARM);
    const lines = await push(`${FROM}/multi`, 'whole');
    await push(`${FROM}/attested`, 'attested');

    assert.equal((await pushedTo('one')).digest, manifestOf('arm64'));
    assert.deepEqual(await pushedTo('whole'), {
      digest: index.digest,
      mediaType: 'application/vnd.oci.image.index.v1+json',
    });
    assert.equal(lines.at(-2)?.status, `1: digest: ${index.digest} size: ${index.size}`);
    // A pull takes no attestations.
    assert.equal((await pushedTo('attested')).digest, manifestOf(index.host.architecture, attested));
    await engine.post('/images/prune?filters={"dangling":["false"]}');
    await pull(`${TO}/whole`, 'linux/arm64');
    const { body } = await engine.get<{ Architecture: string }>(`/images/${TO}/whole:1/json`);
    assert.equal(body.Architecture, 'arm64');
  });

  test('an index with small uncompressed layers is pushed whole', async () => {
    const repository = `${FROM}/v2/small`;
    const layers = ['one', 'two', 'three', 'four', 'five', 'six'].map((name) =>
      new TarWriter().add({ name, content: name.repeat(1000) }).end(),
    );
    const blobs = [];
    for (const layer of layers)
      blobs.push(await registries.putBlob(repository, layer, 'application/vnd.oci.image.layer.v1.tar'));
    const { architecture } = index.host;
    const json = {
      os: 'linux',
      architecture,
      config: {},
      rootfs: { type: 'layers', diff_ids: blobs.map(({ digest }) => digest) },
    };
    const config = await registries.putBlob(
      repository,
      Buffer.from(JSON.stringify(json)),
      'application/vnd.oci.image.config.v1+json',
    );
    const written = { schemaVersion: 2, mediaType: MANIFEST, config, layers: blobs };
    const manifest = { ...(await registries.putManifest(repository, '', written, MANIFEST)), platform: index.host };
    const list = { schemaVersion: 2, mediaType: INDEX, manifests: [manifest] };
    const { digest } = await registries.putManifest(repository, '1', list, INDEX);
    await pull(`${FROM}/small`);

    const lines = await push(`${FROM}/small`, 'small');

    assert.equal(lines.at(-1)?.error, undefined);
    assert.equal((await pushedTo('small')).digest, digest);
    for (const [at, { digest }] of blobs.entries()) {
      const { body } = await registries.request('GET', `http://${TO}/v2/small/blobs/${digest}`);
      assert.deepEqual(body, layers[at]);
    }
  });

  test('an image without a manifest, and its platform', async () => {
    await engine.post('/images/load', imageArchive(new TarWriter().add({ name: 'file' }).end(), ['plain:1']));

    assert.match((await push('plain', 'plain', ARM)).at(-1)?.error ?? '', /does not match the specified platform/);
    assert.equal((await push('plain', 'plain')).at(-1)?.error, undefined);

    assert.match((await pushedTo('plain')).mediaType, /docker\.distribution\.manifest\.v2/);
  });
});

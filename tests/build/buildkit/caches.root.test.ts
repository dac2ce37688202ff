import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';

const REGISTRY = '127.0.0.1:5000';
const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CACHE_CONFIG = 'application/vnd.buildkit.cacheconfig.v0';
const FILE = [
  'FROM busybox AS tool',
  'ARG COLOR=red',
  'RUN cat /proc/sys/kernel/random/uuid > /tool',
  'FROM busybox',
  'WORKDIR /work',
  'COPY f .',
  'RUN cat /proc/sys/kernel/random/uuid > made && echo in $PWD',
  'ENV A=b',
];
const BOTH = [...FILE, 'COPY --from=tool /tool /'];

type Cache = { layers: { blob: string; annotations: { diffID: string } }[]; records: unknown[] };
type Manifest = { config: { digest: string; mediaType: string }; layers: { digest: string }[] };

suite('caches of other machines', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  let registries: Registries;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await project.write({ 'p/f': 'content\n', 'p/Dockerfile': BOTH.join('\n'), 'one/Dockerfile': FILE.join('\n') });
    await project.write({ 'one/f': 'content\n' });
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  /** Builds, and returns the id of the image with the text of the client. */
  async function build(folder: string, ...flags: string[]): Promise<{ id: string; text: string }> {
    const all = ['build', '--progress', 'plain', '--network=none', '--iidfile', 'id', ...flags, folder];
    const { code, text } = await project.docker(all);
    assert.equal(code, 0, text);
    return { id: (await readFile(join(project.folder, 'id'), 'utf8')).trim(), text };
  }

  /** Leaves only the base image, as on another machine. */
  async function forget(): Promise<void> {
    for (;;) {
      const { body } = await engine.get<{ Id: string; RepoTags: string[] }[]>('/images/json?all=1');
      const others = body.filter(({ RepoTags }) => !RepoTags.includes('busybox:latest'));
      if (others.length === 0) return;
      for (const { Id } of others) await engine.delete(`/images/${Id}?force=1`);
    }
  }

  async function cacheIn(tag: string): Promise<{ manifest: Manifest; cache: Cache }> {
    const headers = { accept: OCI_MANIFEST };
    const url = `http://${REGISTRY}/v2/cache`;
    const manifest = JSON.parse(
      (await registries.request('GET', `${url}/manifests/${tag}`, { headers })).body.toString(),
    ) as Manifest;
    const { body } = await registries.request('GET', `${url}/blobs/${manifest.config.digest}`);
    return { manifest, cache: JSON.parse(body.toString()) as Cache };
  }

  const steps = (text: string): number => text.match(/\nin \/work|\S+ in \/work/g)?.length ?? 0;
  const from = `--cache-from=type=registry,ref=${REGISTRY}/cache`;

  test('a cache in a registry with mode=max has the steps of all stages: the same image without running them', async () => {
    const first = await build('p', `--cache-to=type=registry,ref=${REGISTRY}/cache:max,mode=max`);
    assert.equal(steps(first.text), 1, first.text);
    const { manifest } = await cacheIn('max');
    assert.equal(manifest.config.mediaType, CACHE_CONFIG);
    await forget();

    const second = await build('p', `${from}:max`);

    assert.equal(second.id, first.id, second.text);
    assert.equal(steps(second.text), 0, second.text);
    assert.match(second.text, /importing cache manifest from 127\.0\.0\.1:5000\/cache:max/);
    assert.equal(second.text.match(/CACHED/g)?.length, 5, second.text);

    const others = await build('p'); // the cache is for the client that trusts it
    assert.equal(steps(others.text), 1, others.text);
  });

  test('a changed file ends the use of a cache at its step', async () => {
    await forget();
    await project.write({ 'p/f': 'changed\n' });

    const { text } = await build('p', `${from}:max`);

    assert.equal(steps(text), 1, text);
    assert.equal(text.match(/CACHED/g)?.length, 2, text);
    await project.write({ 'p/f': 'content\n' });
  });

  test('a cache in a folder of the client', async () => {
    await forget();
    const first = await build('one', '--cache-to=type=local,dest=folder');
    await forget();

    const second = await build('one', '--cache-from=type=local,src=folder');

    assert.equal(second.id, first.id, second.text);
    assert.equal(steps(second.text), 0, second.text);
    const again = await build('one', '--cache-from=type=local,src=folder', '--cache-to=type=local,dest=folder');
    assert.equal(again.id, first.id, again.text);
  });

  test('an image with its own cache: from its registry, and from the store', async () => {
    await forget();
    const name = `${REGISTRY}/inline:1`;
    const first = await build('one', '--cache-to=type=inline', '-t', name, '--push');
    assert.equal(steps(first.text), 1, first.text);
    const stored = await build('one', `--cache-from=${name}`, '--cache-to=type=inline');
    assert.equal(stored.id, first.id, stored.text);
    await forget();

    const second = await build('one', `--cache-from=${name}`, '--cache-to=type=inline');

    assert.equal(second.id, first.id, second.text);
    assert.equal(steps(second.text), 0, second.text);
  });

  test('a missing or damaged cache is left out, and the build goes on', async () => {
    const repository = `${REGISTRY}/v2/cache`;
    const { manifest, cache } = await cacheIn('max');
    const put = async (tag: string, changed: unknown, layers: unknown = manifest.layers): Promise<void> => {
      const text = typeof changed === 'string' ? changed : JSON.stringify(changed);
      const config = await registries.putBlob(repository, Buffer.from(text), CACHE_CONFIG);
      const body = { schemaVersion: 2, mediaType: OCI_MANIFEST, config, layers };
      await registries.putManifest(repository, tag, body, OCI_MANIFEST);
    };
    const others = cache.layers.map((layer) => ({
      ...layer,
      annotations: { ...layer.annotations, diffID: `sha256:${'0'.repeat(64)}` },
    }));
    await put('digests', { ...cache, layers: others });
    await put(
      'sizes',
      cache,
      manifest.layers.map((layer) => ({ ...layer, size: 7 })),
    );
    await put('text', '{"layers": [');
    const ROWS: readonly (readonly [string, RegExp])[] = [
      ['digests', /a layer of the cache cannot be used/],
      ['sizes', /a layer of the cache cannot be used: layer \S+ is larger than the 7 bytes/],
      ['text', /ERROR: .*invalid cache: it is not JSON/],
      ['missing', /ERROR: failed to configure registry cache importer: \S+\/cache:missing: not found/],
    ];
    for (const [tag, said] of ROWS) {
      await forget();
      const { text } = await build('one', `${from}:${tag}`);
      assert.match(text, said);
      assert.equal(steps(text), 1, text);
    }
  });

  test('unknown kinds of caches are refused by name', async () => {
    const address = 'account_url=http://a,secret_access_key=a'; // without a key the client asks the net for one, and then drops the cache
    for (const flag of ['--cache-to=type=azblob,name=a', '--cache-from=type=azblob,name=a']) {
      const { code, text } = await project.docker(['build', `${flag},${address}`, 'one']);
      assert.equal(code, 1, `${flag}\n${text}`);
      assert.match(text, /--cache-(?:to|from) type="azblob" is not implemented: use/);
    }
  });
});

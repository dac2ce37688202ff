import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';

type Metadata = Readonly<Record<string, string>> &
  Readonly<{ 'containerimage.descriptor': { mediaType: string; digest: string; annotations?: object } }>;

const REGISTRY = '127.0.0.1:5000';
const FILES = { Dockerfile: 'FROM busybox\nCOPY f /f\nLABEL a=b\n', f: 'content\n' };
const OCI = 'application/vnd.oci.image';

suite('outputs of builds', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  let registries: Registries;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await project.write({ 'p/f': FILES.f, 'p/Dockerfile': FILES.Dockerfile });
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const read = async (name: string): Promise<string> => await readFile(join(project.folder, name), 'utf8');
  async function build(...flags: string[]): Promise<Metadata> {
    const files = ['--metadata-file', 'meta', '--iidfile', 'id'];
    const { code, text } = await project.docker(['build', '--progress', 'plain', ...flags, ...files, 'p']);
    assert.equal(code, 0, text);
    return JSON.parse(await read('meta')) as Metadata;
  }
  const blobIn = (files: Map<string, { content: Buffer }>, digest: string): Buffer =>
    files.get(`blobs/${digest.replace(':', '/')}`)!.content;

  test('type=oci is a layout with compressed layers, named in its index', async () => {
    const meta = await build('--output', 'type=oci,dest=o.tar,name=out:1,annotation.note=here');

    const files = tarList(await readFile(join(project.folder, 'o.tar')));
    const index = JSON.parse(files.get('index.json')!.content.toString()) as {
      manifests: [Metadata & { digest: string }];
    };
    const [entry] = index.manifests;
    assert.deepEqual(
      [entry.digest, meta['containerimage.digest'], meta['image.name']],
      [meta['containerimage.descriptor'].digest, entry.digest, 'docker.io/library/out:1'],
    );
    assert.equal((await read('id')).trim(), meta['containerimage.config.digest']);
    const manifest = JSON.parse(blobIn(files, entry.digest).toString()) as Record<string, never>;
    const { mediaType, annotations, config, layers } = manifest as unknown as {
      mediaType: string;
      annotations: object;
      config: { mediaType: string; digest: string };
      layers: { mediaType: string; digest: string }[];
    };
    assert.deepEqual([mediaType, config.mediaType], [`${OCI}.manifest.v1+json`, `${OCI}.config.v1+json`]);
    assert.deepEqual(annotations, { note: 'here' });
    assert.deepEqual(new Set(layers.map((layer) => layer.mediaType)), new Set([`${OCI}.layer.v1.tar+gzip`]));
    assert.ok(tarList(gunzipSync(blobIn(files, layers.at(-1)!.digest))).has('f'));
    assert.ok(!files.has('manifest.json'));
  });

  test('layers with zstd, without compression, or as files of a folder', async () => {
    const layersOf = async (output: string): Promise<[string, Buffer][]> => {
      const meta = await build('--output', output);
      const files = output.includes('tar=false') ? undefined : tarList(await readFile(join(project.folder, 'o.tar')));
      const blob = async (digest: string): Promise<Buffer> =>
        files === undefined
          ? await readFile(join(project.folder, 'o', 'blobs', digest.replace(':', '/')))
          : blobIn(files, digest);
      const manifest = JSON.parse(String(await blob(meta['containerimage.descriptor'].digest))) as {
        layers: { mediaType: string; digest: string }[];
      };
      return await Promise.all(
        manifest.layers.map(async ({ mediaType, digest }) => [mediaType, await blob(digest)] as [string, Buffer]),
      );
    };
    const ROWS: readonly (readonly [string, string, (bytes: Buffer) => Buffer])[] = [
      ['type=oci,dest=o.tar,compression=zstd,compression-level=19', 'tar+zstd', zstdDecompressSync],
      ['type=oci,dest=o.tar,compression=uncompressed', 'tar', (bytes) => bytes],
      ['type=oci,dest=o,tar=false,compression-level=9', 'tar+gzip', gunzipSync],
    ];
    for (const [output, type, plain] of ROWS) {
      const layers = await layersOf(output);
      const [mediaType, bytes] = layers.at(-1)!;
      assert.equal(mediaType, `${OCI}.layer.v1.${type}`, output);
      assert.ok(tarList(plain(bytes)).has('f'), output);
    }
    const index = JSON.parse(await read('o/index.json')) as { manifests: object[] };
    assert.equal(index.manifests.length, 1);
  });

  test('type=local and type=tar have a file with several names once', async () => {
    for (const output of ['type=local,dest=files', 'type=tar,dest=files.tar']) {
      const { code, text } = await project.docker(['build', '--output', output, 'p']);
      assert.equal(code, 0, text);
    }
    const [first, second] = await Promise.all(
      ['ls', 'cat'].map(async (name) => await stat(join(project.folder, 'files/bin', name))),
    );
    assert.equal(first!.ino, second!.ino);
    assert.ok((await stat(join(project.folder, 'files.tar'))).size < 2 * first!.size);
  });

  test('several outputs of one build', async () => {
    const outputs = ['local,dest=several', 'tar,dest=several.tar', 'oci,dest=several.oci', 'docker,name=several'];

    const words = outputs.flatMap((output) => ['--output', `type=${output}`]);
    const { code, text } = await project.docker(['build', ...words, 'p']);

    assert.equal(code, 0, text);
    assert.equal(await read('several/f'), FILES.f);
    const [tar, layout] = await Promise.all(
      ['several.tar', 'several.oci'].map(async (name) => tarList(await readFile(join(project.folder, name)))),
    );
    assert.equal(tar!.get('f')?.content.toString(), FILES.f);
    assert.ok(layout!.has('index.json'));
    assert.equal((await project.docker(['image', 'inspect', 'several'])).code, 0);
  });

  test('type=docker is an archive that the engine loads', async () => {
    const meta = await build('--output', 'type=docker,dest=d.tar,name=loaded:1');
    assert.equal(meta['containerimage.descriptor'].mediaType, 'application/vnd.docker.distribution.manifest.v2+json');

    const loaded = await project.docker(['load', '-i', 'd.tar']);

    assert.match(loaded.text, /Loaded image: loaded:1/);
    assert.equal((await project.docker(['run', '--rm', '--network=none', 'loaded:1', 'cat', '/f'])).text, FILES.f);
  });

  test('--push sends the image to its registry, and tells the digest there', async () => {
    const meta = await build('-t', `${REGISTRY}/pushed:1`, '--push');

    const { headers } = await registries.request('GET', `http://${REGISTRY}/v2/pushed/manifests/1`, {
      headers: { accept: 'application/vnd.docker.distribution.manifest.v2+json' },
    });
    assert.equal(meta['containerimage.digest'], headers['docker-content-digest']);
    assert.equal(meta['containerimage.descriptor'].digest, headers['docker-content-digest']);
    assert.equal((await read('id')).trim(), meta['containerimage.config.digest']);
  });

  test('type=image has its name in the store; unknown forms are refused by name before the build', async () => {
    const meta = await build('--output', 'type=image,name=stored:1');
    const { body } = await engine.get<{ Id: string }>('/images/stored:1/json');
    assert.deepEqual([meta['containerimage.digest'], meta['containerimage.config.digest']], [body.Id, body.Id]);

    for (const [output, reason] of [
      ['type=oci,dest=z.tar,compression=estargz', /the compression estargz is not implemented: use gzip, zstd/],
      ['type=oci,dest=z.tar,compression-level=x', /non-integer value x specified for compression-level/],
    ] as const) {
      const refused = await project.docker(['build', '--progress', 'plain', '--output', output, 'p']);
      assert.equal(refused.code, 1);
      assert.match(refused.text, reason);
      assert.doesNotMatch(refused.text, /COPY/);
    }
  });
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib';

import { TarWriter, type TarEntry } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxArchive, busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestImages } from '@gantry/testing/test-images.ts';

import { mountTmpfs, unmount } from '../../host/mounts/mount.ts';
import { chainIds, sha256 } from '../../layers/chain-id.ts';
import { SetAside } from '../../trees/set-aside.ts';
import { goArchitecture } from '../configuration/architecture.ts';
import { chooseImages, saveImages } from './save.ts';

const base = layerOf({ name: 'etc/', type: 'directory' }, { name: 'etc/name', content: 'base' });
const upper = layerOf({ name: 'etc/.wh.name' }, { name: 'new', content: 'upper' });

function layerOf(...entries: TarEntry[]): Buffer {
  return tarOf(entries);
}

function tarOf(entries: readonly TarEntry[]): Buffer {
  const tar = new TarWriter();
  for (const entry of entries) tar.add(entry);
  return tar.end();
}

const compressions: readonly (readonly [string, (archive: Buffer) => Buffer])[] = [
  ['none', (archive) => archive],
  ['gzip', (archive) => gzipSync(archive)],
  ['zstd', (archive) => zstdCompressSync(archive)],
  ['xz', (archive) => execFileSync('xz', ['-c'], { input: archive })],
  ['bzip2', (archive) => execFileSync('bzip2', ['-c'], { input: archive })],
];

for (const [name, compress] of compressions) {
  test(`an archive with compression ${name} is loaded`, async () => {
    await using engine = new TestImages();

    const lines = await engine.load(compress(imageArchive([base, upper], ['two:1', 'three:1'])));

    assert.deepEqual(
      lines.flatMap(({ stream }) => stream ?? []),
      ['Loaded image: two:1\n', 'Loaded image: three:1\n'],
    );
    const image = engine.images.find('two:1');
    assert.deepEqual(image.diffIds, [sha256(base), sha256(upper)]);
    assert.deepEqual(image.layers, chainIds(image.diffIds));
    assert.equal(image.sizeBytes, 9);
    assert.equal(readFileSync(join(engine.topFolder(image), 'new'), 'utf8'), 'upper');
  });

  test(`an archive with compression ${name} that is cut is refused, and leaves nothing behind`, async () => {
    await using engine = new TestImages();
    const archive = compress(imageArchive([Buffer.concat([base])], ['cut:1']));

    await assert.rejects(engine.load(archive.subarray(0, Math.floor(archive.length / 2))), { name: 'EngineError' });

    await assertEmpty(engine);
  });
}

test('a compressed layer of megabytes in a compressed archive is loaded to the last byte', async () => {
  await using engine = new TestImages();
  const content = randomBytes(3_000_000);
  const layer = gzipSync(layerOf({ name: 'noise', content }));
  const config = JSON.stringify({
    architecture: goArchitecture(),
    os: 'linux',
    rootfs: { type: 'layers', diff_ids: [sha256(gunzipSync(layer))] },
  });
  const members = [
    { name: 'layer', content: layer },
    { name: 'config', content: config },
    manifest('config', ['layer']),
  ];

  await engine.load(gzipSync(layerOf(...members)));

  const [image] = engine.images.all();
  assert.ok(readFileSync(join(engine.topFolder(image!), 'noise')).equals(content));
});

test('progress lines count a layer up to its size', async () => {
  await using engine = new TestImages();

  const lines = await engine.load(await busyboxArchive());

  const sizes = lines.filter(({ status }) => status === 'Loading layer').map(({ progressDetail }) => progressDetail);
  const total = busyboxLayer().length;
  assert.deepEqual(sizes.at(-1), { current: total, total });
});

test('images share their layers, and the last one that goes takes them along', async () => {
  await using engine = new TestImages();
  await engine.load(imageArchive([base], ['a:1']));
  await engine.load(imageArchive([base, upper], ['b:1'], { Cmd: ['b'] }));
  const [a, b] = [engine.images.find('a:1'), engine.images.find('b:1')];

  assert.equal(a.layers[0], b.layers[0]);
  assert.equal(foldersOf(engine).length, 2);
  assert.deepEqual(
    engine.images.delete(a.id, () => undefined),
    [],
  );
  assert.equal(foldersOf(engine).length, 2);
  assert.deepEqual(
    engine.images.delete(b.id, () => undefined),
    b.layers.toReversed(),
  );
  await assertEmpty(engine);
});

test('an image may have the same layer twice', async () => {
  await using engine = new TestImages();

  await engine.load(imageArchive([base, upper, base], ['twice:1']));

  const image = engine.images.find('twice:1');
  assert.deepEqual(image.diffIds, [sha256(base), sha256(upper), sha256(base)]);
  engine.images.delete(image.id, () => undefined);
  await assertEmpty(engine);
});

test('the same image loaded four times at once is there once', async () => {
  await using engine = new TestImages();
  const archive = await busyboxArchive();

  await Promise.all([1, 2, 3, 4].map(async () => await engine.load(archive)));

  assert.equal(engine.images.all().length, 1);
  assert.equal(foldersOf(engine).length, 1);
  assert.equal(readdirSync(join(engine.directory, 'blobs/skeletons')).length, 1);
  assert.deepEqual(readdirSync(join(engine.directory, 'blobs/arriving')), []);
});

test('a name that another image has moves over, and the client is told', async () => {
  await using engine = new TestImages();
  await engine.load(imageArchive([base], ['a:1']));
  const before = engine.images.find('a:1');

  const lines = await engine.load(imageArchive([upper], ['a:1']));

  assert.match(String(lines.find(({ stream }) => stream?.includes('renaming'))?.stream), new RegExp(before.id));
  assert.deepEqual(engine.images.tagsOf(before.id), []);
  assert.deepEqual(engine.images.find('a:1').diffIds, [sha256(upper)]);
});

test('one bad image in an archive of two leaves neither', async () => {
  await using engine = new TestImages();
  const bad = layerOf({ name: '../outside', content: 'x' });
  const archive = imageArchive([base, bad], ['bad:1']);

  await assert.rejects(engine.load(archive), { kind: 'invalid', message: /leads out of the root/ });

  await assertEmpty(engine);
});

test('an archive with more than 10,000 names is refused, and leaves nothing behind', async () => {
  await using engine = new TestImages();
  const names = Array.from({ length: 10_001 }, (_, at) => `many:${at}`);

  await assert.rejects(engine.load(imageArchive([base], names)), { kind: 'invalid', message: /more than 10000 names/ });

  await assertEmpty(engine);
});

test('a layer with another digest than in its image is refused', async () => {
  await using engine = new TestImages();
  const archive = imageArchive([base], ['a:1']);
  const at = archive.indexOf('base'); // in the layer's content, behind its checksummed header
  archive.write('evil', at);

  await assert.rejects(engine.load(archive), { kind: 'invalid', message: /a layer has the digest/ });

  await assertEmpty(engine);
});

for (const [what, entries, message] of [
  ['nothing in it', [{ name: 'hello', content: 'x' }], /no image found/],
  ['a manifest that is not JSON', [{ name: 'manifest.json', content: '{' }], /is not JSON/],
  ['a manifest of brackets', [{ name: 'manifest.json', content: '['.repeat(7e6) }], /nested deeper than 100 levels/],
  [
    'a configuration of brackets',
    [manifest('c.json', []), { name: 'c.json', content: `{"a":${'['.repeat(7e6)}` }],
    /"c\.json" cannot be read: it is nested deeper than 100 levels/,
  ],
  [
    'a configuration of a million values',
    [manifest('c.json', []), { name: 'c.json', content: `[${'[],'.repeat(1e6)}1]` }],
    /"c\.json" cannot be read: it has more than 100000 values/,
  ],
  ['settings of brackets', [{ name: 'a/json', content: '['.repeat(7e6) }], /"a\/json" cannot be read/],
  ['a manifest of the wrong shape', [{ name: 'manifest.json', content: '{"a":1}' }], /"manifest.json":/],
  ['a configuration that is missing', [manifest('c.json', [])], /"c.json" is missing/],
  ['an invalid configuration', [manifest('c.json', []), { name: 'c.json', content: '[]' }], /invalid image config/],
  [
    'more layers than its configuration',
    [manifest('c.json', ['l']), { name: 'c.json', content: '{"rootfs":{"type":"layers"}}' }, { name: 'l' }],
    /length mismatch: expected 0, got 1/,
  ],
  [
    'a manifest of 100 MB',
    [{ name: 'manifest.json', content: `[${' '.repeat(100_000_000)}]` }],
    /"manifest\.json" has 100000002 bytes; the limit is/,
  ],
  [
    'a configuration of 100 MB',
    [manifest('c.json', []), { name: 'c.json', content: `{${' '.repeat(100_000_000)}}` }],
    /"c\.json" has 100000002 bytes; the limit is/,
  ],
  [
    'an index of 100 MB',
    [{ name: 'index.json', content: ' '.repeat(100_000_000) }],
    /has 100000000 bytes; the limit is/,
  ],
  ['a link out of the archive', [{ name: 'manifest.json', type: 'symlink', linkName: '../passwd' }], /leads out/],
  ['a link to a file of the host', [{ name: 'manifest.json', type: 'symlink', linkName: '/etc/passwd' }], /is missing/],
  ['a link in a circle', [{ name: 'manifest.json', type: 'symlink', linkName: 'manifest.json' }], /is missing/],
  [
    'a layer that is its own parent',
    [{ name: 'a/json', content: '{"id":"a","parent":"a"}' }, { name: 'a/layer.tar' }],
    /its own parent/,
  ],
] as const satisfies readonly (readonly [string, readonly TarEntry[], RegExp])[]) {
  test(`an image archive with ${what} is refused`, async () => {
    await using engine = new TestImages();

    await assert.rejects(engine.load(tarOf(entries)), { kind: 'invalid', message });

    await assertEmpty(engine);
  });
}

function manifest(config: string, layers: readonly string[]): TarEntry {
  return { name: 'manifest.json', content: JSON.stringify([{ Config: config, RepoTags: null, Layers: layers }]) };
}

test('an OCI layout with indexes in indexes gives the image of this machine', async () => {
  await using engine = new TestImages();
  const oci = new OciLayout();
  const layers = [gzipSync(base), upper];
  const config = oci.blob(
    JSON.stringify({
      architecture: goArchitecture(),
      os: 'linux',
      rootfs: { type: 'layers', diff_ids: [sha256(base), sha256(upper)] },
      history: [{ created_by: 'one' }, { created_by: 'none', empty_layer: true }, { created_by: 'two' }],
    }),
  );
  const ours = oci.blob(JSON.stringify({ schemaVersion: 2, config, layers: layers.map((layer) => oci.blob(layer)) }));
  const inner = oci.blob(
    JSON.stringify({
      manifests: [
        { ...ours, digest: sha256('of another platform'), platform: { os: 'linux', architecture: 's390x' } },
        { ...ours, platform: { os: 'linux', architecture: goArchitecture() } },
      ],
    }),
  );
  const index = { ...inner, mediaType: 'application/vnd.oci.image.index.v1+json' };
  const archive = oci.archive([{ ...index, annotations: { 'org.opencontainers.image.ref.name': 'r.io/oci:2' } }]);

  const lines = await engine.load(archive);

  assert.deepEqual(lines.at(-1), { stream: 'Loaded image: r.io/oci:2\n' });
  const image = engine.images.find('r.io/oci:2');
  assert.equal(image.id, config.digest);
  assert.equal(readFileSync(join(engine.topFolder(image), 'new'), 'utf8'), 'upper');
  const bytes = await collect(saveImages(engine, chooseImages(engine, ['r.io/oci:2'])));
  await using other = new TestImages();
  await other.load(bytes);
  assert.deepEqual(other.images.find('r.io/oci:2').diffIds, image.diffIds);
});

test('an OCI layout with indexes in indexes is refused at a depth', async () => {
  await using engine = new TestImages();
  const oci = new OciLayout();
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  let inner = { ...oci.blob('{"manifests":[]}'), mediaType };
  for (let depth = 0; depth < 50; depth += 1) {
    inner = { ...oci.blob(JSON.stringify({ schemaVersion: 2, manifests: [inner] })), mediaType };
  }

  await assert.rejects(engine.load(oci.archive([inner])), { kind: 'invalid', message: /too many nested indexes/ });

  await assertEmpty(engine);
});

test('an OCI blob with another digest than its name is refused', async () => {
  await using engine = new TestImages();
  const oci = new OciLayout();
  const manifest = oci.blob('{"config":{},"layers":[]}');
  oci.replace(manifest.digest, 'evil');

  await assert.rejects(engine.load(oci.archive([manifest])), { kind: 'invalid', message: /has the digest/ });
});

/** Blobs under their digests. */
class OciLayout {
  readonly #blobs = new Map<string, Buffer>();

  blob(content: string | Buffer): { mediaType: string; digest: string; size: number } {
    const bytes = Buffer.from(content as string);
    this.#blobs.set(sha256(bytes), bytes);
    return { mediaType: 'application/x', digest: sha256(bytes), size: bytes.length };
  }

  replace(digest: string, content: string): void {
    this.#blobs.set(digest, Buffer.from(content));
  }

  archive(manifests: readonly object[]): Buffer {
    return tarOf([
      { name: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
      { name: 'index.json', content: JSON.stringify({ schemaVersion: 2, manifests }) },
      ...[...this.#blobs].map(([digest, content]) => ({ name: `blobs/${digest.replace(':', '/')}`, content })),
    ]);
  }
}

test('the oldest form gives an image per layer, with the ids that other engines give', async () => {
  await using engine = new TestImages();
  const [first, second] = ['a'.repeat(64), 'b'.repeat(64)];
  const common = { architecture: 'amd64', os: 'linux', docker_version: '1.9.1', config: { Cmd: ['sh'] } };
  const archive = tarOf([
    { name: `${second}/VERSION`, content: '1.0' },
    {
      name: `${second}/json`,
      content: JSON.stringify({
        id: second,
        parent: first,
        created: '2020-01-02T03:04:06Z',
        container_config: { Cmd: ['touch', '<x>'] },
        author: 'me',
        comment: 'co',
        ...common,
      }),
    },
    { name: `${second}/layer.tar`, content: gzipSync(upper) },
    {
      name: `${first}/json`,
      content: JSON.stringify({
        id: first,
        created: '2020-01-02T03:04:05Z',
        container_config: { Cmd: null },
        Size: 4,
        ...common,
      }),
    },
    { name: `${first}/layer.tar`, content: base },
    { name: 'repositories', content: JSON.stringify({ old: { v1: second } }) },
  ]);

  const lines = await engine.load(archive);

  assert.deepEqual(lines.at(-1), { stream: 'Loaded image: old:v1\n' });
  const image = engine.images.find('old:v1');
  assert.equal(
    engine.images.jsonOf(image.id),
    '{"architecture":"amd64","author":"me","comment":"co","config":{"Cmd":["sh"]},' +
      '"container_config":{"Cmd":["touch","\\u003cx\\u003e"]},"created":"2020-01-02T03:04:06Z","docker_version":"1.9.1",' +
      '"history":[{"created":"2020-01-02T03:04:05Z"},' +
      '{"created":"2020-01-02T03:04:06Z","author":"me","created_by":"touch \\u003cx\\u003e","comment":"co"}],"os":"linux",' +
      `"rootfs":{"type":"layers","diff_ids":["${sha256(base)}","${sha256(upper)}"]}}`,
  );
  assert.deepEqual(engine.images.get(image.parentId!)?.diffIds, [sha256(base)]);
});

test('a saved image is the loaded one, to the byte of each layer', async () => {
  await using engine = new TestImages();
  const [plain, image] = [layerOf({ name: 'a', content: 'odd'.repeat(5000) }), busyboxLayer()];
  await engine.load(imageArchive([image, plain], ['s:1', 's:2', 'other:1']));

  const saved = await collect(saveImages(engine, chooseImages(engine, ['s'])));

  const directory = mkdtempSync(join(tmpdir(), 'gantry-save-'));
  execFileSync('tar', ['-xf', '-', '-C', directory], { input: saved });
  const [entry] = JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8'));
  assert.deepEqual(entry.RepoTags, ['s:1', 's:2']);
  const layers = (entry.Layers as string[]).map((path) => readFileSync(join(directory, path)));
  assert.deepEqual(layers.map(sha256), [sha256(image), sha256(plain)]);
  const top = entry.Layers[1].split('/')[0];
  const repositories = JSON.parse(readFileSync(join(directory, 'repositories'), 'utf8'));
  assert.deepEqual(repositories, { s: { 1: top, 2: top } });
  rmSync(directory, { recursive: true });
});

test('an import makes an image of one layer with the settings it was given', async () => {
  await using engine = new TestImages();

  const image = await engine.import(gzipSync(busyboxLayer()), 'imp', ['CMD ["sh"]', 'LABEL a=b']);

  assert.equal(engine.images.find('imp:latest'), image);
  assert.deepEqual(image.diffIds, [sha256(busyboxLayer())]);
  assert.deepEqual(image.config.Cmd, ['sh']);
  assert.equal(sha256(engine.images.jsonOf(image.id)), image.id);
  assert.deepEqual(
    engine.happened().map(({ action, id, attributes }) => ({ action, id, attributes })),
    [
      { action: 'tag', id: image.id, attributes: { a: 'b', name: 'imp:latest' } },
      { action: 'import', id: image.id, attributes: { a: 'b', name: image.id } },
    ],
  );
});

test('an import that is no archive, or breaks off, leaves nothing behind', async () => {
  await using engine = new TestImages();
  const layer = busyboxLayer();

  await assert.rejects(engine.import(Buffer.from('garbage'), 'bad'), { kind: 'invalid' });
  await assert.rejects(engine.import(layer.subarray(0, layer.length / 2), 'bad'), { kind: 'invalid' });
  await assert.rejects(engine.import(gzipSync(layer).subarray(0, 5000), 'bad'), { message: /gzip data is cut/ });

  await assertEmpty(engine);
});

test('a bomb stops at the limit', async () => {
  await using engine = new TestImages({ limits: { bytes: 10_000_000, entries: 1000 } });
  const bomb = layerOf({ name: 'zeros', content: Buffer.alloc(50_000_000) });

  await assert.rejects(engine.import(gzipSync(bomb), 'bomb'), {
    kind: 'invalid',
    message: /more bytes than the limit of 10000000/,
  });

  await assertEmpty(engine);
});

test('a full disk is said clearly, and leaves nothing behind', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gantry-full-'));
  mountTmpfs(directory, 4 * 1024 * 1024);
  try {
    await using engine = new TestImages({ directory });
    const before = statfsSync(directory).bfree;

    // once while the archive comes, once while it is extracted
    await assert.rejects(
      engine.load(imageArchive([layerOf({ name: 'big', content: Buffer.alloc(6e6, 'x') })], ['big:1'])),
      {
        kind: 'failed',
        message: /no space left on device/,
      },
    );
    await assert.rejects(engine.load(await busyboxArchive()), { kind: 'failed', message: /no space left on device/ });

    await assertEmpty(engine);
    assert.ok(before - statfsSync(directory).bfree < 10, 'the space is free again');
    await engine.load(imageArchive([base], ['small:1']));
    assert.equal(engine.images.find('small:1').sizeBytes, 4);
  } finally {
    unmount(directory);
    rmSync(directory, { recursive: true });
  }
});

test('leftovers of a crash are removed at the next start, and unknown folders are set aside', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gantry-crash-'));
  using _directory = { [Symbol.dispose]: () => rmSync(directory, { recursive: true }) };
  {
    await using engine = new TestImages({ directory });
    await engine.load(imageArchive([base, upper], ['kept:1']));
    await engine.layers.prepare('c'.repeat(64), engine.images.find('kept:1').id);
    await engine.layers.prepare('d'.repeat(64), engine.images.find('kept:1').id);
    engine.images.refer({ repository: 'docker.io/library/kept', tag: '2' }, engine.images.find('kept:1').id);
    mkdirSync(join(directory, 'layers/new-123/dir'), { recursive: true });
    mkdirSync(join(directory, 'layers/orphan/dir'), { recursive: true });
    mkdirSync(join(directory, 'layers/init/orphan/dir'), { recursive: true });
    mkdirSync(join(directory, 'layers/init/none'), { recursive: true });
    mkdirSync(join(directory, 'layers/.trash/half/dir'), { recursive: true });
    mkdirSync(join(directory, 'writable/orphan/upper'), { recursive: true });
    mkdirSync(join(directory, 'blobs/arriving/half'), { recursive: true });
    for (const name of unknownBlobs) execFileSync('touch', [join(directory, name)]);
  }
  await using engine = new TestImages({ directory });

  const image = engine.images.find('kept:2');
  const told: string[] = [];
  const setAside = new SetAside(directory, Temporal.Instant.from('2026-11-22T06:00:00Z'), {
    warn: (details) => told.push((details as { path: string }).path),
    error: () => assert.fail('all of it can be set aside'),
  });
  engine.layers.reconcile(new Set(['c'.repeat(64)]), new Set([image.id]), setAside);
  await engine.layers.settled();

  assert.deepEqual(readdirSync(join(directory, 'layers/.trash')), []);
  assert.deepEqual(
    foldersOf(engine),
    engine.layers
      .all()
      .map(({ folder }) => folder)
      .toSorted(),
  );
  assert.equal(foldersOf(engine).length, 2);
  assert.deepEqual(readdirSync(join(directory, 'layers/init')), ['none']);
  assert.deepEqual(readdirSync(join(directory, 'writable')).toSorted(), ['.trash', 'c'.repeat(64)]);
  assert.deepEqual(readdirSync(join(directory, 'blobs/arriving')), []);
  assert.deepEqual(
    readdirSync(join(directory, 'blobs/skeletons')).toSorted(),
    [base, upper].map((layer) => sha256(layer).slice(7)).toSorted(),
  );
  const unknown = ['layers/orphan', 'writable/orphan', ...unknownBlobs];
  assert.deepEqual(
    told,
    unknown.map((name) => join(directory, name)),
  );
  for (const name of unknown) assert.ok(existsSync(join(directory, 'lost-and-found/2026-11-22T06:00:00Z', name)), name);
});

const unknownBlobs = [`blobs/sha256/${'0'.repeat(64)}`, `blobs/skeletons/${'0'.repeat(64)}`];

async function collect(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks, (chunk) => Buffer.from(chunk))); // valid until the next one
}

function foldersOf({ directory }: TestImages): string[] {
  return readdirSync(join(directory, 'layers'))
    .filter((name) => !['.trash', 'common', 'init'].includes(name))
    .toSorted();
}

async function assertEmpty(engine: TestImages): Promise<void> {
  await engine.layers.settled();
  assert.deepEqual(engine.images.all(), []);
  assert.deepEqual(engine.layers.all(), []);
  assert.deepEqual(foldersOf(engine), []);
  assert.deepEqual(readdirSync(join(engine.directory, 'layers/.trash')), []);
  assert.deepEqual(readdirSync(join(engine.directory, 'blobs/sha256')), []);
  assert.deepEqual(readdirSync(join(engine.directory, 'blobs/skeletons')), []);
  assert.deepEqual(readdirSync(join(engine.directory, 'blobs/arriving')), []);
}

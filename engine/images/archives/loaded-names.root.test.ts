import assert from 'node:assert/strict';
import { test } from 'node:test';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestImages } from '@gantry/testing/test-images.ts';

import { sha256 } from '../../layers/chain-id.ts';
import { goArchitecture } from '../configuration/architecture.ts';
import { tagImage } from '../names/tag.ts';
import { chooseImages, saveImages } from './save.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const layers = ['base', 'middle', 'top'].map((name) => new TarWriter().add({ name, content: name }).end());

/** Three images, each on top of the one before. */
async function family(): Promise<{ engine: TestImages; ids: string[] }> {
  const engine = new TestImages();
  const ids: string[] = [];
  for (const [index] of layers.entries()) {
    await engine.load(imageArchive(layers.slice(0, index + 1), [`f:${index}`]));
    ids.push(engine.images.find(`f:${index}`).id);
    if (index > 0) engine.images.setParent(ids[index]!, ids[index - 1]!);
  }
  return { engine, ids };
}

async function saved(engine: TestImages, refs: readonly string[]): Promise<Buffer> {
  return Buffer.concat(
    await Array.fromAsync(saveImages(engine, chooseImages(engine, refs)), (chunk) => Buffer.from(chunk)),
  );
}

function manifestOf(archive: Buffer): { Config: string; Parent?: string }[] {
  return JSON.parse(tarList(archive).get('manifest.json')!.content.toString()) as { Config: string; Parent?: string }[];
}

/** The archive with changed entries of its manifest.json. */
function withManifest(archive: Buffer, change: (entry: object, index: number) => object): Buffer {
  const tar = new TarWriter();
  for (const { path, type, content } of tarList(archive).values()) {
    const changed = path === 'manifest.json' ? JSON.stringify(manifestOf(archive).map(change)) : content;
    tar.add({ name: path, content: changed, type: type === 'directory' ? type : 'file' });
  }
  return tar.end();
}

test('an archive names the parents that it contains, in any order, and a load restores them', async () => {
  const { engine, ids } = await family();
  await using _engine = engine;
  await using other = new TestImages();

  const archive = await saved(engine, ['f:2', ids[1]!, 'f:0']);
  await other.load(archive);

  assert.deepEqual(
    manifestOf(archive).map(({ Parent }) => Parent),
    [ids[1], ids[0], undefined],
  );
  assert.deepEqual(
    ids.map((id) => other.images.get(id)?.parentId),
    [undefined, ids[0], ids[1]],
  );
  assert.deepEqual(other.images.tagsOf(ids[1]!), []);
});

test('an archive without the parent names none', async () => {
  const { engine, ids } = await family();
  await using _engine = engine;
  await using other = new TestImages();

  const archive = await saved(engine, ['f:2', 'f:0']);
  await other.load(archive);
  await other.load(withManifest(archive, (entry) => ({ ...entry, Parent: DIGEST })));

  assert.deepEqual(
    manifestOf(archive).map(({ Parent }) => Parent),
    [undefined, undefined],
  );
  assert.equal(other.images.get(ids[2]!)?.parentId, undefined);
});

test('a parent with another history is refused, and nothing is loaded', async () => {
  const { engine, ids } = await family();
  await using _engine = engine;
  await using other = new TestImages();
  const archive = await saved(engine, ['f:0', 'f:1', 'f:2']);

  for (const wrong of [[ids[1]!, ids[0]!, ids[0]!], [undefined, undefined, ids[0]!], [ids[2]!]]) {
    const changed = withManifest(archive, (entry, index) => ({ ...entry, Parent: wrong[index] }));
    await assert.rejects(other.load(changed), { kind: 'invalid', message: /cannot be the parent/ });
  }

  assert.deepEqual(other.images.all(), []);
});

test('a load is no tagging: only a tag sets when the image was last tagged', async () => {
  await using engine = new TestImages();
  const archive = imageArchive(layers, ['a:1']);
  await engine.load(archive);
  const { id } = engine.images.find('a:1');

  assert.equal(engine.images.taggedAt(id), undefined);
  tagImage(engine, id, 'b', '1');
  const taggedAt = engine.images.taggedAt(id);
  await engine.load(archive);

  assert.ok(taggedAt !== undefined);
  assert.equal(engine.images.taggedAt(id), taggedAt);
  assert.deepEqual(engine.images.tagsOf(id), ['a:1', 'b:1']);
});

test('a name of an archive cannot be a digest, which would stand for another content', async () => {
  await using engine = new TestImages();

  for (const name of [`a@${DIGEST}`, `a:1@${DIGEST}`, 'sha256:x']) {
    await assert.rejects(engine.load(imageArchive(layers, [name])), {
      kind: 'invalid',
      message: /^refusing to create/,
    });
  }

  assert.deepEqual(engine.images.all(), []);
});

const REF = 'org.opencontainers.image.ref.name';
const FULL = 'io.containerd.image.name';

const annotated: readonly (readonly [annotations: Record<string, string>, name: string | undefined])[] = [
  [{}, undefined],
  [{ [REF]: '' }, undefined],
  [{ [REF]: 'app' }, 'app:latest'],
  [{ [REF]: 'latest' }, 'latest:latest'],
  [{ [REF]: 'v1.0' }, 'v1.0:latest'],
  [{ [REF]: 'app:1' }, 'app:1'],
  [{ [REF]: 'r.io/app' }, 'r.io/app:latest'],
  [{ [FULL]: 'docker.io/library/app:2', [REF]: '2' }, 'app:2'],
  [{ [FULL]: '', [REF]: 'app:3' }, 'app:3'],
  [{ [FULL]: 'app' }, 'app:latest'],
  [{ [REF]: 'Not A Name' }, undefined],
  [{ [REF]: `app@${DIGEST}` }, undefined],
  [{ [REF]: 'sha256:x' }, undefined],
];

for (const [annotations, name] of annotated) {
  test(`an OCI layout with the annotations ${JSON.stringify(annotations)} is loaded as ${name}`, async () => {
    await using engine = new TestImages();

    const lines = await engine.load(ociLayout(annotations));

    const [image] = engine.images.all();
    assert.deepEqual(engine.images.referencesOf(image!.id).length, name === undefined ? 0 : 1);
    const text = name === undefined ? `Loaded image ID: ${image!.id}\n` : `Loaded image: ${name}\n`;
    assert.deepEqual(lines.at(-1), { stream: text });
  });
}

function ociLayout(annotations: Record<string, string>): Buffer {
  const [layer] = layers;
  const tar = new TarWriter();
  const blob = (content: Buffer | string): object => {
    const digest = sha256(content);
    tar.add({ name: `blobs/${digest.replace(':', '/')}`, content });
    return { mediaType: 'application/x', digest, size: content.length };
  };
  const rootfs = { type: 'layers', diff_ids: [sha256(layer!)] };
  const config = blob(JSON.stringify({ architecture: goArchitecture(), os: 'linux', rootfs }));
  const manifest = blob(JSON.stringify({ schemaVersion: 2, config, layers: [blob(layer!)] }));
  return tar.add({ name: 'index.json', content: JSON.stringify({ manifests: [{ ...manifest, annotations }] }) }).end();
}

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TarWriter } from '@gantry/testing/tar-writer.ts';
import { TestImages } from '@gantry/testing/test-images.ts';

const ID = 'ab'.repeat(32);

const base = new TarWriter()
  .add({ name: 'keep', content: 'keep' })
  .add({ name: 'gone', content: 'gone' })
  .add({ name: 'opaque/below', content: 'below' })
  .add({ name: 'srv/', type: 'directory', mode: 0o1777, uid: 5 })
  .end();
const upper = new TarWriter()
  .add({ name: '.wh.gone' })
  .add({ name: 'opaque/.wh..wh..opq' })
  .add({ name: 'opaque/above', content: 'above' })
  .add({ name: 'srv/implied', content: 'x' })
  .end();

async function withContainer(): Promise<TestImages> {
  const engine = new TestImages();
  await engine.load(imageArchive([base, upper], ['a:1']));
  await engine.layers.prepare(ID, engine.images.find('a:1').id);
  return engine;
}

test('the merged view of an image has the files of its archives', async () => {
  await using engine = await withContainer();

  await using mounted = await engine.layers.mountOnHost(ID);

  assert.deepEqual(readdirSync(mounted.path).toSorted(), ['.dockerenv', 'keep', 'opaque', 'srv']);
  assert.deepEqual(readdirSync(join(mounted.path, 'opaque')), ['above']);
  const srv = statSync(join(mounted.path, 'srv'));
  assert.deepEqual([srv.mode & 0o7777, srv.uid], [0o1777, 5]);
  assert.equal(statSync(mounted.path).mode & 0o7777, 0o755);
});

test('users of a mounted container share the mount, and it goes with the last', async () => {
  await using engine = await withContainer();
  const [first, second] = await Promise.all([engine.layers.mountOnHost(ID), engine.layers.mountOnHost(ID)]);

  await first[Symbol.asyncDispose]();
  assert.equal(readFileSync(join(second.path, 'keep'), 'utf8'), 'keep');
  await second[Symbol.asyncDispose]();

  assert.deepEqual(readdirSync(second.path), []);
});

test('a mount is removed also while it is in use', async () => {
  await using engine = await withContainer();
  const mounted = await engine.layers.mountOnHost(ID);
  const held = openSync(join(mounted.path, 'keep'), 'r');

  await mounted[Symbol.asyncDispose]();

  closeSync(held);
  assert.deepEqual(readdirSync(mounted.path), []);
});

test('files of a container are counted, and stay out of the image', async () => {
  await using engine = await withContainer();
  {
    await using mounted = await engine.layers.mountOnHost(ID);
    writeFileSync(join(mounted.path, 'keep'), 'changed!');
    mkdirSync(join(mounted.path, 'new'));
    writeFileSync(join(mounted.path, 'new/file'), Buffer.alloc(1000));
  }

  const image = engine.images.find('a:1');
  assert.deepEqual(await engine.layers.size(ID), { writableBytes: 1008, rootBytes: 1008 + image.sizeBytes });
  assert.equal(
    readFileSync(join(engine.layers.folders.directory, engine.layers.get(image.layers[0]!)!.folder, 'keep'), 'utf8'),
    'keep',
  );
});

test('the lower folders are short names relative to their base, topmost first', async () => {
  await using engine = await withContainer();

  const { base: folder, lower } = engine.layers.overlay(ID);

  const [common, ...layers] = lower;
  assert.deepEqual([common, layers.length], ['common', 2]);
  for (const name of layers) assert.match(name, /^\w{12}$/);
  assert.ok(existsSync(join(folder, layers[0]!, 'srv/implied')));
  assert.ok(existsSync(join(folder, layers[1]!, 'keep')));
});

test('a container without an image starts from an empty root, but for the mark of a container', async () => {
  await using engine = new TestImages();
  await engine.layers.prepare(ID, undefined);

  await using mounted = await engine.layers.mountOnHost(ID);

  assert.deepEqual(readdirSync(mounted.path), ['.dockerenv']);
});

test('a removed container is out of sight at once and off the disk soon, also twice', async () => {
  await using engine = await withContainer();
  const folder = join(engine.directory, 'writable', ID);
  for (let at = 0; at < 200; at += 1) writeFileSync(join(folder, 'upper', `file${at}`), 'x');

  await engine.layers.remove(ID);
  await engine.layers.remove(ID);

  assert.ok(!existsSync(folder));
  await engine.layers.settled();
  assert.deepEqual(readdirSync(join(engine.directory, 'writable/.trash')), []);
});

test('files that were made immutable are removed all the same', async () => {
  await using engine = await withContainer();
  const file = join(engine.directory, 'writable', ID, 'upper', 'stone');
  writeFileSync(file, 'x');
  execFileSync('chattr', ['+i', file]);

  await engine.layers.remove(ID);
  await engine.layers.settled();

  assert.deepEqual(readdirSync(join(engine.directory, 'writable/.trash')), []);
});

test('a layer that is leased stays although its image goes', async () => {
  await using engine = new TestImages();
  await engine.load(imageArchive([base], ['a:1']));
  const image = engine.images.find('a:1');
  const lease = engine.layers.lease(image.layers[0]!);

  assert.deepEqual(
    engine.images.delete(image.id, () => undefined),
    [],
  );
  assert.equal(engine.layers.all().length, 1);
  lease[Symbol.dispose]();

  assert.deepEqual(engine.layers.all(), []);
});

test('preparing fails without leaving anything when its folder cannot be made', async () => {
  await using engine = new TestImages();
  writeFileSync(join(engine.directory, 'writable', ID), 'in the way');

  await assert.rejects(engine.layers.prepare(ID, undefined), { code: 'EEXIST' });

  assert.throws(() => engine.layers.overlay(ID), /owns no layers/);
});

test('preparing on an image that has just been removed names it', async () => {
  await using engine = new TestImages();

  await assert.rejects(engine.layers.prepare(ID, 'sha256:gone'), {
    kind: 'notFound',
    message: 'No such image: sha256:gone',
  });

  assert.equal(engine.layers.isOwner(ID), false);
});

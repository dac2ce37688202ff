import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestImages } from '@gantry/testing/test-images.ts';

const ID = 'ab'.repeat(32);
/** The names that every container has in its root. */
const INIT = ['.dockerenv', 'dev', 'etc', 'proc', 'sys'];

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

  assert.deepEqual(readdirSync(mounted.path).toSorted(), [...INIT, 'keep', 'opaque', 'srv'].toSorted());
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

  const [init, ...layers] = lower;
  assert.deepEqual([init, layers.length], [`init/${layers[0]}`, 2]);
  for (const name of layers) assert.match(name, /^\w{12}$/);
  assert.ok(existsSync(join(folder, layers[0]!, 'srv/implied')));
  assert.ok(existsSync(join(folder, layers[1]!, 'keep')));
});

test('a container without an image starts from an empty root, but for the init layer', async () => {
  await using engine = new TestImages();
  await engine.layers.prepare(ID, undefined);

  await using mounted = await engine.layers.mountOnHost(ID);

  assert.deepEqual(readdirSync(mounted.path), INIT);
});

/** An image on two layers with this one, its container, and the container's mounted root. */
async function mountedOver(layer: Buffer): Promise<{ engine: TestImages; root: string } & AsyncDisposable> {
  const engine = new TestImages();
  await engine.load(imageArchive([base, layer], ['a:1']));
  await engine.layers.prepare(ID, engine.images.find('a:1').id);
  const mounted = await engine.layers.mountOnHost(ID);
  const dispose = async (): Promise<void> => {
    await mounted[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  };
  return { engine, root: mounted.path, [Symbol.asyncDispose]: dispose };
}

test('the init layer has the mount points of a run, and hides other files of an image there', async () => {
  const layer = new TarWriter()
    .add({ name: 'etc/', type: 'directory', mode: 0o2750, uid: 3, gid: 4, mtime: 1_000_000_000 })
    .add({ name: 'etc/hosts', content: 'of the image' })
    .add({ name: 'etc/resolv.conf', type: 'symlink', linkName: '/run/resolv.conf' })
    .add({ name: 'etc/other', content: 'other' })
    .add({ name: 'proc', type: 'symlink', linkName: '/etc' })
    .add({ name: 'sys/', type: 'directory', mode: 0o555 });
  await using mounted = await mountedOver(layer.end());
  const { engine, root } = mounted;

  const found = execFileSync('find', ['dev', 'etc', 'proc', 'sys', '-printf', '%p %y %m %U:%G %l\n'], { cwd: root });

  assert.deepEqual(
    found
      .toString()
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
      .toSorted(),
    [
      'dev d 755 0:0',
      'dev/console f 755 0:0',
      'dev/pts d 755 0:0',
      'dev/shm d 755 0:0',
      'etc d 2750 3:4',
      'etc/hostname f 755 0:0',
      'etc/hosts f 755 0:0',
      'etc/mtab l 777 0:0 /proc/mounts',
      'etc/other f 644 0:0',
      'etc/resolv.conf f 755 0:0',
      'proc d 755 0:0',
      'sys d 555 0:0',
    ],
  );
  assert.equal(readFileSync(join(root, 'etc/hosts'), 'utf8'), '');
  assert.equal(statSync(join(root, 'etc')).mtimeMs, 1e12);
  const top = engine.layers.folders.pathOf(engine.layers.chain(engine.images.find('a:1').layers.at(-1))[0]!);
  assert.equal(readFileSync(join(top, 'etc/hosts'), 'utf8'), 'of the image');
});

test('an /etc that is a link of the image stays, with its files', async () => {
  const layer = new TarWriter()
    .add({ name: 'etc', type: 'symlink', linkName: 'usr/etc' })
    .add({ name: 'usr/etc/passwd', content: 'users' });
  await using mounted = await mountedOver(layer.end());

  assert.equal(readFileSync(join(mounted.root, 'etc/passwd'), 'utf8'), 'users');
});

test('the init layer is made once for an image, made again when it is lost, and goes with the image', async () => {
  await using engine = await withContainer();
  const folder = join(engine.layers.folders.directory, engine.layers.overlay(ID).lower[0]!);
  const mount = async (): Promise<number> => {
    await using _mounted = await engine.layers.mountOnHost(ID);
    return statSync(folder).ino;
  };

  const [first, second] = [await mount(), await mount()];
  rmSync(folder, { recursive: true });
  await mount();
  await engine.layers.remove(ID);
  const isThere = existsSync(folder);
  engine.images.delete(engine.images.find('a:1').id, () => undefined);

  assert.equal(first, second);
  assert.ok(isThere);
  assert.ok(!existsSync(folder));
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

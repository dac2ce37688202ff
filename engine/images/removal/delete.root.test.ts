import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestImages } from '@gantry/testing/test-images.ts';

import { parseReference } from '../names/reference.ts';
import { tagImage } from '../names/tag.ts';
import type { Image } from '../store.ts';
import { deleteImage } from './delete.ts';

const CONTAINER = 'c0ffee'.padEnd(64, '0');
const GENTLE = { force: false, noprune: false };
const FORCED = { force: true, noprune: false };

const layer = new TarWriter().add({ name: 'a', content: 'a' }).end();
const upper = new TarWriter().add({ name: 'b', content: 'b' }).end();

/** An engine with the image `a:1`. */
async function withImage(): Promise<{ engine: TestImages; image: Image; short: string }> {
  const engine = new TestImages();
  await engine.load(imageArchive([layer], ['a:1'], { Labels: { k: 'v' } }));
  const image = engine.images.find('a:1');
  return { engine, image, short: image.id.slice(7, 19) };
}

/** An image `child:1` on top of `a:1`, as a commit makes it. */
async function addChild(engine: TestImages, parent: Image): Promise<Image> {
  await engine.load(imageArchive([layer, upper], ['child:1']));
  const child = engine.images.find('child:1');
  engine.images.setParent(child.id, parent.id);
  return engine.images.find('child:1');
}

function conflict(message: string): { kind: 'conflict'; message: string } {
  return { kind: 'conflict', message: `conflict: ${message}` };
}

test('the last name takes the image and its layers along', async () => {
  const { engine, image } = await withImage();
  await using _engine = engine;

  const removals = deleteImage(engine, 'a:1', GENTLE);

  assert.deepEqual(removals, [{ untagged: 'a:1' }, { deleted: image.id }, { deleted: image.layers[0] }]);
  assert.deepEqual(
    engine.happened().map(({ action, attributes }) => [action, attributes]),
    ['load', 'untag', 'delete'].map((action) => [action, { k: 'v', name: image.id }]),
  );
  assert.throws(() => engine.images.find('a:1'), { kind: 'notFound', message: 'No such image: a:1' });
});

test('a name of several goes alone', async () => {
  const { engine, image } = await withImage();
  await using _engine = engine;
  tagImage(engine, 'a:1', 'b', 'x');

  assert.deepEqual(deleteImage(engine, 'b:x', GENTLE), [{ untagged: 'b:x' }]);
  assert.deepEqual(engine.images.tagsOf(image.id), ['a:1']);
});

test('by id an image with one name goes, one with several only by force', async () => {
  const { engine, image, short } = await withImage();
  await using _engine = engine;
  tagImage(engine, 'a:1', 'b', 'x');

  assert.throws(
    () => deleteImage(engine, short, GENTLE),
    conflict(`unable to delete ${short} (must be forced) - image is referenced in multiple repositories`),
  );
  assert.deepEqual(deleteImage(engine, short.slice(0, 6), FORCED), [
    { untagged: 'a:1' },
    { untagged: 'b:x' },
    { deleted: image.id },
    { deleted: image.layers[0] },
  ]);
});

test('a digest goes along with the last tag of its repository', async () => {
  const { engine, image } = await withImage();
  await using _engine = engine;
  const digest = `a@sha256:${'1'.repeat(64)}`;
  engine.images.refer(parseReference(digest), image.id);

  assert.equal(engine.images.find(digest).id, image.id);
  assert.deepEqual(deleteImage(engine, 'a:1', GENTLE).slice(0, 3), [
    { untagged: 'a:1' },
    { untagged: digest },
    { deleted: image.id },
  ]);
});

test('a stopped container keeps its image, unless by force; its own layers stay', async () => {
  const { engine, image, short } = await withImage();
  await using _engine = engine;
  engine.users.push({ id: CONTAINER, running: false, image: image.id });
  await engine.layers.prepare(CONTAINER, image.id);

  assert.throws(
    () => deleteImage(engine, 'a:1', GENTLE),
    conflict(
      `unable to remove repository reference "a:1" (must force) - container c0ffee000000 is using its referenced image ${short}`,
    ),
  );
  assert.throws(
    () => deleteImage(engine, short, GENTLE),
    conflict(`unable to delete ${short} (must be forced) - image is being used by stopped container c0ffee000000`),
  );
  assert.deepEqual(deleteImage(engine, 'a:1', FORCED), [{ untagged: 'a:1' }, { deleted: image.id }]);
  const [, ...ofImage] = engine.layers.overlay(CONTAINER).lower; // the first is what all containers have
  assert.equal(ofImage.length, 1);
  await engine.layers.remove(CONTAINER);
  assert.deepEqual(engine.layers.all(), []);
});

test('a running container keeps its image; by force it only loses its name', async () => {
  const { engine, image, short } = await withImage();
  await using _engine = engine;
  engine.users.push({ id: CONTAINER, running: true, image: image.id });
  const refusal = conflict(
    `unable to delete ${short} (cannot be forced) - image is being used by running container c0ffee000000`,
  );

  assert.throws(() => deleteImage(engine, short, GENTLE), refusal);
  assert.throws(() => deleteImage(engine, short, FORCED), refusal);
  assert.throws(() => deleteImage(engine, 'a:1', GENTLE), { kind: 'conflict' });
  assert.deepEqual(deleteImage(engine, 'a:1', FORCED), [{ untagged: 'a:1' }]);
  assert.equal(engine.images.find(short), image);
});

test('a parent stays for its child, and goes with it once it has no name', async () => {
  const { engine, image, short } = await withImage();
  await using _engine = engine;
  const child = await addChild(engine, image);

  assert.deepEqual(deleteImage(engine, 'a:1', GENTLE), [{ untagged: 'a:1' }]);
  assert.throws(
    () => deleteImage(engine, short, FORCED),
    conflict(`unable to delete ${short} (cannot be forced) - image has dependent child images`),
  );
  assert.deepEqual(deleteImage(engine, 'child:1', GENTLE), [
    { untagged: 'child:1' },
    { deleted: child.id },
    { deleted: child.layers[1] },
    { deleted: image.id },
    { deleted: image.layers[0] },
  ]);
});

test('noprune keeps the parent, a name does as well', async () => {
  const { engine, image } = await withImage();
  await using _engine = engine;
  await addChild(engine, image);
  deleteImage(engine, 'child:1', GENTLE);
  assert.equal(engine.images.all().length, 1, 'it has a name');

  await addChild(engine, image);
  deleteImage(engine, 'a:1', GENTLE);
  deleteImage(engine, 'child:1', { force: false, noprune: true });

  assert.deepEqual(engine.images.all(), [image]);
});

test('a missing image and an invalid reference are refused', async () => {
  const { engine } = await withImage();
  await using _engine = engine;

  assert.throws(() => deleteImage(engine, 'nope', GENTLE), { kind: 'notFound', message: 'No such image: nope:latest' });
  assert.throws(() => deleteImage(engine, 'BAD', GENTLE), { kind: 'invalid' });
  assert.throws(() => deleteImage(engine, 'sha256:', GENTLE), { kind: 'notFound' });
});

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestImages } from '@gantry/testing/test-images.ts';

import { listImages } from './list.ts';
import { parseReference } from './names/reference.ts';

const DIGEST = `sha256:${'1'.repeat(64)}`;

suite('listed images', { concurrency: false }, () => {
  let engine: TestImages;
  const kinds = new Map<string, string>();

  before(async () => {
    engine = new TestImages();
    // An image of each kind; a `-step` has a child, which is the tagged one.
    for (const kind of ['tag', 'tag-step', 'digest', 'digest-step', 'both', 'nameless', 'step']) {
      await engine.load(imageArchive(new TarWriter().add({ name: kind }).end(), ['new:1'], { Cmd: [kind] }));
      const { id } = engine.images.find('new:1');
      kinds.set(id, kind);
      engine.images.unrefer(parseReference('new:1'));
      if (/tag|both/.test(kind)) engine.images.refer(parseReference(`${kind}:1`), id);
      if (/digest|both/.test(kind)) engine.images.refer(parseReference(`${kind}@${DIGEST}`), id);
    }
    const child = engine.images.find('tag:1').id;
    await engine.load(imageArchive(new TarWriter().add({ name: 'second' }).end(), ['second:1'], { Cmd: ['second'] }));
    await engine.load(imageArchive(new TarWriter().add({ name: 'third' }).end(), ['third:1'], { Cmd: ['third'] }));
    const children = [child, engine.images.find('second:1').id, engine.images.find('third:1').id];
    for (const [index, kind] of ['tag-step', 'digest-step', 'step'].entries()) {
      const [id] = [...kinds].find(([, each]) => each === kind)!;
      engine.images.setParent(children[index]!, id);
    }
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const NAMED = ['both', 'digest', 'digest-step', 'tag', 'tag-step'];
  const rows: readonly (readonly [all: boolean, dangling: string | undefined, listed: readonly string[]])[] = [
    [false, undefined, [...NAMED, 'nameless']],
    [true, undefined, [...NAMED, 'nameless', 'step']],
    [false, 'true', ['digest', 'nameless']],
    [true, 'true', ['digest', 'nameless']],
    [false, 'false', NAMED],
    [true, 'false', NAMED],
  ];

  for (const [all, dangling, listed] of rows) {
    test(`with all=${all} and dangling=${dangling} are ${listed.join(', ')}`, () => {
      const filters = new Map(dangling === undefined ? [] : [['dangling', new Set([dangling])]]);

      const found = listImages(engine, { all, filters }).flatMap(({ image }) => kinds.get(image.id) ?? []);

      assert.deepEqual(found.toSorted(), listed.toSorted());
    });
  }
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { removeTree } from './remove.ts';
import { bytesBelow } from './size.ts';

/** Goes down until the shell's own path is full; that of the host is longer. Leaves five bytes there. */
const GO_DEEP = 'while mkdir abcdefghij && cd abcdefghij; do :; done 2>/dev/null; echo deep >file';

/** 900 folders in each other, 9,900 bytes of path; the lowest has a file of five bytes, immutable where it can be. */
function makeDeep(path: string, { immutable = false } = {}): void {
  const part = Array.from({ length: 300 }, () => 'abcdefghij').join('/');
  for (const name of ['a', 'b', 'c']) mkdirSync(join(path, name, part), { recursive: true });
  writeFileSync(join(path, 'c', part, 'file'), 'deep\n');
  if (immutable) execFileSync('chattr', ['+i', join(path, 'c', part, 'file')], { stdio: 'pipe' });
  renameSync(join(path, 'c'), join(path, 'b', part, 'c'));
  renameSync(join(path, 'b'), join(path, 'a', part, 'b'));
}

suite('a tree deeper than a path can be', { concurrency: false }, () => {
  let folder: string;
  before(() => (folder = mkdtempSync(join(tmpdir(), 'gantry-trees-'))));
  after(() => rmSync(folder, { recursive: true, force: true }));

  test('is measured and removed', async () => {
    const deep = join(folder, 'deep');
    makeDeep(deep);

    const bytes = await bytesBelow(deep);
    await removeTree(deep, new AbortController().signal);

    assert.equal(bytes, 5);
    assert.equal(existsSync(deep), false);
  });

  test('is removed also when something at its bottom is immutable', async () => {
    const deep = join(folder, 'immutable');
    makeDeep(deep, { immutable: true });

    await removeTree(deep, new AbortController().signal);

    assert.equal(existsSync(deep), false);
  });

  for (const [size, files] of [
    ['small', 10],
    ['large', 2000],
  ] as const) {
    test(`the size of a ${size} tree counts a file once, links as they are, and folders not`, async () => {
      const tree = join(folder, size);
      mkdirSync(join(tree, 'inner'), { recursive: true });
      for (let i = 0; i < files; i += 1) writeFileSync(join(tree, `inner/${i}`), 'ten bytes!');
      linkSync(join(tree, 'inner/0'), join(tree, 'again'));
      symlinkSync('to', join(tree, 'link'));

      assert.equal(await bytesBelow(tree), files * 10 + 2);
    });

    test(`a ${size} tree is removed, and nothing that its links lead to`, async () => {
      const tree = join(folder, `${size}-linked`);
      mkdirSync(tree);
      const kept = join(folder, `kept-${size}`);
      mkdirSync(kept);
      writeFileSync(join(kept, 'file'), '');
      for (let i = 0; i < files; i += 1) symlinkSync(kept, join(tree, `${i}`));
      writeFileSync(Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0xfe])]), 'a name that is not UTF-8');

      await removeTree(tree, new AbortController().signal);

      assert.equal(existsSync(tree), false);
      assert.deepEqual(readdirSync(kept), ['file']);
    });
  }

  test('a link in the place of a tree is removed, not its target', async () => {
    const link = join(folder, 'link');
    symlinkSync(folder, link);

    await removeTree(link, new AbortController().signal);

    assert.equal(existsSync(link), false);
    assert.equal(existsSync(folder), true);
  });
});

test('a container that goes deep in its files and in a volume hurts nobody', async () => {
  await using engine = await TestEngine.start();
  const body = { HostConfig: { Binds: ['deep:/v', 'kept:/k'] } };
  const script = ['/v', '/k', '/srv'].map((place) => `mkdir -p ${place} && cd ${place} && ${GO_DEEP}`).join('; ');
  const id = await engine.run(['sh', '-c', script], body);
  assert.equal(await engine.wait(id), 0);

  const { status, body: listed } = await engine.get<{ SizeRw: number }[]>('/containers/json?all=1&size=1');
  assert.deepEqual([status, listed[0]?.SizeRw], [200, 5]);
  assert.equal((await engine.delete(`/containers/${id}?v=1`)).status, 204);
  assert.equal((await engine.delete('/volumes/deep')).status, 204);
  await engine.kill('SIGKILL'); // during the removal
  await engine.startAgain();

  assert.equal((await engine.delete('/volumes/kept')).status, 204);
  for (const trash of ['volumes/.trash', 'writable/.trash']) {
    while (readdirSync(join(engine.dataRoot, trash)).length > 0) await setTimeout(10);
  }
  assert.doesNotMatch(engine.log, /could not be removed|is still there/);
});

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempDisposableSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import { ContextTree } from './context-tree.ts';
import { KeptContexts, type ContextFiles } from './kept-contexts.ts';

const KIB = 1024;

function contextsIn(dataRoot: string, buildCacheBytes = 1024 * KIB): KeptContexts {
  const log = { warn: (details: object, message: string) => assert.fail(`${message} ${JSON.stringify(details)}`) };
  return new KeptContexts({ live: { current: { dataRoot, buildCacheBytes } }, log });
}

function archiveIn(folder: string, text: string): ContextFiles {
  const files = { archive: join(folder, 'archive'), entries: join(folder, 'entries') };
  for (const path of Object.values(files)) {
    rmSync(path, { force: true });
    writeFileSync(path, path === files.archive ? text : '');
  }
  return files;
}

async function contentOf(contexts: KeptContexts, key: string): Promise<string | undefined> {
  await using kept = await contexts.open(key);
  return kept && `${await kept.archive.readFile('utf8')} ${kept.index.toString()}`;
}

test('a context is found by its key alone, and a reader keeps the one that was replaced', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-contexts-'));
  await using contexts = contextsIn(place.path);
  await contexts.keep('one', archiveIn(place.path, 'first'), Buffer.from('1'));
  await using reader = await contexts.open('one');

  await contexts.keep('one', archiveIn(place.path, 'second'), Buffer.from('2'));

  assert.equal(await contentOf(contexts, 'one'), 'second 2');
  assert.equal(await contentOf(contexts, 'other'), undefined);
  assert.equal(await reader!.archive.readFile('utf8'), 'first');
  const again = { archive: join(place.path, 'again'), entries: join(place.path, 'its-entries') };
  assert.equal(reader!.link(again), false);
  await using newer = await contexts.open('one');
  assert.equal(newer!.link(again), true);
  assert.equal(readFileSync(again.archive, 'utf8'), 'second');
  assert.equal(contexts.list().length, 1);
});

test('contexts are limited in number and in bytes, and those of a killed daemon are removed', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-contexts-'));
  const folder = join(place.path, 'build-contexts');
  mkdirSync(join(folder, '.trash/new-half'), { recursive: true });
  {
    await using contexts = contextsIn(place.path);
    for (let at = 0; at < 70; at += 1)
      await contexts.keep(`key ${at}`, archiveIn(place.path, 'x'), Buffer.from(`${at}`));
    assert.equal(contexts.list().length, 64);
    assert.equal(await contentOf(contexts, 'key 69'), 'x 69');
    await eventually('the trash is empty', () => readdirSync(join(folder, '.trash')).length === 0);
  }

  await using small = contextsIn(place.path, 40 * KIB);
  await small.keep('too large', archiveIn(place.path, 'x'.repeat(50 * KIB)), Buffer.from(''));
  assert.equal(await contentOf(small, 'too large'), undefined);
  await small.keep('last', archiveIn(place.path, 'x'.repeat(30 * KIB)), Buffer.from('i'));
  assert.ok(small.list().reduce((sum, { bytes }) => sum + bytes, 0) <= 40 * KIB);
  assert.equal(await contentOf(small, 'last'), `${'x'.repeat(30 * KIB)} i`);
});

test('prune takes the least recently used until enough is free', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-contexts-'));
  await using contexts = contextsIn(place.path);
  for (const key of ['a', 'b', 'c']) await contexts.keep(key, archiveIn(place.path, key), Buffer.from(key));

  assert.deepEqual(contexts.prune(0, () => true).ids, []);
  assert.deepEqual(contexts.prune(Infinity, () => false).ids, []);
  assert.equal(contexts.prune(1, () => true).ids.length, 1);
  assert.equal(contexts.prune(Infinity, () => true).ids.length, 2);
  assert.deepEqual(contexts.list(), []);
});

test('entries that were replaced since do not count as entries of a context', () => {
  using tree = new ContextTree();
  const [some, names] = [40_000, (at: number) => `file ${at}`];
  for (let round = 0; round < 5; round += 1) {
    for (let at = 0; at < some; at += 1) tree.add({ path: names(at), type: 'file', sum: '', target: '' });
    for (let at = 0; at < some; at += 1) tree.remove(tree.get(names(at))!);
  }

  assert.equal(tree.get(names(0)), undefined);
});

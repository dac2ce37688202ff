import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ignorePatterns, ignores } from '@gantry/template/ignore-file.ts';

import { runAtOnce } from '../../lib/concurrency/slices.ts';
import { ContextTree } from './context-tree.ts';
import { removeIgnored } from './ignored-entries.ts';

const PATHS = ['a', 'a/b', 'a/b/c', 'a/b/d', 'a/x', 'b', 'b/a', 'c/b/a/d', 'c/e', 'd/a', 'd/d/d', 'x y', 'é/a'];
const LINES = [
  'a',
  '*',
  '**/a',
  'a/**',
  '!a/b',
  '*/b',
  '!**/d',
  'b/',
  '?',
  'c/*/a',
  '!c/e',
  '[a-b]/[^b]',
  '**',
  '!x*',
  'd/d',
];

function treeOf(paths: readonly string[]): ContextTree {
  const tree = new ContextTree();
  const isFolder = (path: string): boolean => paths.some((other) => other.startsWith(`${path}/`));
  for (const path of paths) tree.add({ path, type: isFolder(path) ? 'folder' : 'file', sum: '', target: '' });
  return tree;
}

function pathsIn(tree: ContextTree, folder = tree.root, above = ''): string[] {
  const paths = [...tree.entriesIn(folder)].flatMap((node) => {
    const path = `${above}${tree.nameOf(node)}`;
    return [path, ...pathsIn(tree, node, `${path}/`)];
  });
  return paths.toSorted();
}

test('the entries that are removed are those that each path by itself has ignored, in all pairs of lines', () => {
  for (const first of LINES) {
    for (const second of LINES) {
      const patterns = ignorePatterns(`${first}\n${second}`);
      const tree = treeOf(PATHS);
      const all = pathsIn(tree);

      runAtOnce(removeIgnored(tree, patterns));

      const kept = all.filter((path) => !ignores(patterns, path));
      const needed = all.filter((path) => kept.some((other) => other === path || other.startsWith(`${path}/`)));
      assert.deepEqual(pathsIn(tree).toSorted(), needed.toSorted(), `${first}, ${second}`);
      const bits = tree.ignoredBits(new Set());
      const ignored = PATHS.filter((_, at) => (bits[at >> 3]! & (1 << (at & 7))) !== 0);
      assert.deepEqual(ignored.toSorted(), PATHS.filter((path) => !needed.includes(path)).toSorted());
    }
  }
});

test('a later entry replaces a folder with all that is in it', () => {
  const tree = treeOf(['a/b', 'a/c', 'd']);
  tree.add({ path: 'a', type: 'file', sum: '', target: '' });
  tree.add({ path: 'd/e', type: 'file', sum: '', target: '' });

  assert.deepEqual(pathsIn(tree), ['a', 'd', 'd/e']);
});

test('a folder that comes again keeps its content', () => {
  const tree = treeOf(['a/b']);
  const sum = '6e6577'.padEnd(64, '0');
  tree.add({ path: 'a', type: 'folder', sum, target: '' });

  assert.deepEqual(pathsIn(tree), ['a', 'a/b']);
  assert.equal(tree.sumOf(tree.get('a')!), sum);
});

test('a file in more than 1,000 folders is refused', () => {
  assert.throws(() => treeOf([`${'a/'.repeat(1001)}b`]), { kind: 'invalid', message: /more than 1,000 folders/ });
});

test('patterns are matched in a tree of 1,000 folders in each other', () => {
  const tree = treeOf([`${'a/'.repeat(1000)}b`]);

  runAtOnce(removeIgnored(tree, ignorePatterns('**')));

  assert.deepEqual(pathsIn(tree), []);
});

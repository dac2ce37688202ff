import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const root = dirname(import.meta.dirname);

/** The files of the walk through a container's life, in its order. */
function walkedFiles(): string[] {
  const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const walk = text.slice(text.indexOf("## A container's life"), text.indexOf('## State'));
  const cells = [...walk.matchAll(/^\|[^|]*\|([^|]*)\|/gm)].map(([, cell = '']) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file));
}

test('the walk through a container opens files that exist, each of them once', () => {
  const files = walkedFiles();

  const missing = files.filter(
    (file) => !['engine/containers', 'engine', ''].some((place) => existsSync(join(root, place, file))),
  );
  assert.ok(files.length > 20);
  assert.deepEqual(missing, []);
  assert.deepEqual([...new Set(files)], files);
});

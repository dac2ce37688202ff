import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
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

test('CONTRIBUTING.md shows where a change goes by files that exist', () => {
  const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
  const named = [...text.matchAll(/`([\w./-]+\.ts|engine\/[\w./-]+)`/g)].map(([, file = '']) => file);
  const files = globSync('{engine,cli,client,tests,tools,testing}/**', { cwd: root, exclude: ['**/node_modules/**'] });

  const missing = named.filter((file) => {
    const place = file.replace(/\/$/, '');
    return !files.some((one) => one === place || one.endsWith(`/${place}`));
  });

  assert.ok(named.length > 30);
  assert.deepEqual(missing, []);
});

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { arrowsOf, folderCycles } from './folder-cycles.ts';

test('no folders import each other in a circle', () => {
  assert.deepEqual(folderCycles(dirname(dirname(import.meta.dirname))), []);
});

test('the folders of the engine import only from lower rows of docs/architecture.md', () => {
  const root = dirname(dirname(import.meta.dirname));
  const rows = new Map(
    [...readFileSync(join(root, 'docs/architecture.md'), 'utf8').matchAll(/^\| +(\d) +\| `([\w-]+)\/`/gm)].map(
      ([, row, folder]) => [`engine/${folder}`, Number(row)],
    ),
  );

  const inner = arrowsOf(root).filter(({ from, to }) => from.startsWith('engine/') && to.startsWith('engine/'));
  const upward = inner.filter(({ from, to }) => !((rows.get(to) ?? Infinity) < (rows.get(from) ?? 0)));

  assert.ok(inner.length > 0);
  assert.deepEqual(upward, []);
});

test('circles are found with their imports; types close them in the engine, not elsewhere', () => {
  const root = mkdtempSync(join(tmpdir(), 'gantry-cycles-'));
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  };
  write('engine/a/one.ts', "import { two } from '../b/two.ts';");
  write('engine/b/two.ts', "import {\n  three,\n} from '@gantry/engine/c/three.ts';");
  write('engine/c/three.ts', "const { one } = await import('../a/one.ts');");
  write('engine/d/four.ts', "import type { One } from '../a/one.ts';\nimport '../e/five.ts';");
  write('engine/e/five.ts', "import type { Four } from '../d/four.ts';");

  write('gateway/f/six.ts', "import type { Seven } from '../g/seven.ts';");
  write('gateway/g/seven.ts', "import type { Six } from '../f/six.ts';");

  const [circle, ...more] = folderCycles(root);

  assert.deepEqual(circle?.folders, ['engine/a', 'engine/b', 'engine/c']);
  assert.deepEqual(circle?.arrows.flatMap(({ files }) => files).toSorted(), [
    'engine/a/one.ts → engine/b/two.ts',
    'engine/b/two.ts → engine/c/three.ts',
    'engine/c/three.ts → engine/a/one.ts',
  ]);
  assert.deepEqual(
    more.map(({ folders }) => folders),
    [['engine/d', 'engine/e']],
  );
  rmSync(root, { recursive: true });
});

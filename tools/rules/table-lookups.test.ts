import assert from 'node:assert/strict';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { tableLookups } from './table-lookups.ts';

test('no daemon looks up names in a plain object: every object has some', () => {
  const root = dirname(dirname(import.meta.dirname));
  const files = globSync(
    ['engine', 'gateway', 'limiter', 'template'].map((name) => `${name}/**/*.ts`),
    {
      cwd: root,
      exclude: ['**/node_modules/**', '**/*.test.ts', '**/testing/**', 'gateway/{tests,clients}/**'],
    },
  );

  assert.ok(files.length > 500);
  assert.deepEqual(tableLookups(root, files), []);
});

const sources: readonly (readonly [source: string, isFound: boolean])[] = [
  ['const table: Readonly<Record<string, number>> = { a: 1 };\nreturn table[name];', true],
  ['const table: Record<string, () => void> = {};\nreturn table[`a${name}`];', true],
  ['const table: Record<string, Record<string, number>> = {};\n(table[a.b] ??= {})[c] = 1;', true],
  ['const table: Record<string, number> = {};\nreturn Object.hasOwn(table, name) ? table[name] : 0;', false],
  ["const table: Record<string, number> = {};\ntable[name] = 1;\nreturn table['own'];", false],
  ['const table: Record<Kind, number> = { a: 1 };\nreturn table[kind];', false],
  ['const table: ReadonlyMap<string, number> = new Map();\nreturn table.get(name);', false],
];

for (const [source, isFound] of sources) {
  test(`${JSON.stringify(source)} ${isFound ? 'has' : 'has no'} look-up in an object`, () => {
    const root = mkdtempSync(join(tmpdir(), 'gantry-lookups-'));
    writeFileSync(join(root, 'a.ts'), `\n${source}\n`);

    const found = tableLookups(root, ['a.ts']);

    rmSync(root, { recursive: true });
    assert.deepEqual(found, isFound ? ['a.ts:3'] : []);
  });
}

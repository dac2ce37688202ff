import assert from 'node:assert/strict';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { listSpreads } from './list-spreads.ts';

test('no daemon spreads a list into arguments: a long one overflows the stack', () => {
  const root = dirname(dirname(import.meta.dirname));
  const files = globSync(
    ['engine', 'gateway', 'limiter', 'template'].map((name) => `${name}/**/*.ts`),
    {
      cwd: root,
      exclude: ['**/node_modules/**', '**/*.test.ts', '**/testing/**', 'gateway/{tests,clients}/**'],
    },
  );

  assert.ok(files.length > 500);
  assert.deepEqual(listSpreads(root, files), []);
});

const sources: readonly (readonly [source: string, isFound: boolean])[] = [
  ['list.push(...items);', true],
  ['list.push(first, ...(a ? b : c));', true],
  ['list.push(\n  ...items,\n);', true],
  ['list.unshift(...items);', true],
  ['list.splice(0, list.length, ...items);', true],
  ['Math.max(0, ...sizes.map(({ size }) => size))', true],
  ['list.push([...items], { ...more });', false],
  ['list.push(of(...items));', false],
  ['append(list, [...items]); Math.max(a, b);', false],
];

for (const [source, isFound] of sources) {
  test(`${JSON.stringify(source)} ${isFound ? 'is' : 'is not'} a spread list`, () => {
    const root = mkdtempSync(join(tmpdir(), 'gantry-spreads-'));
    writeFileSync(join(root, 'a.ts'), `\n${source}\n`);

    const found = listSpreads(root, ['a.ts']);

    rmSync(root, { recursive: true });
    assert.deepEqual(found, isFound ? ['a.ts:2'] : []);
  });
}

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const engine = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(engine, file), 'utf8');

test('versions of the API are known to http, to routes and to versions.ts alone', () => {
  const inside = /^http\/|(^|\/)(routes|versions)(\.test)?\.ts$/;
  const files = globSync('**/*.ts', { cwd: engine, exclude: ['node_modules'] }).filter(
    (file) => !inside.test(file) && !file.endsWith('.test.ts'),
  );

  const knowing = files.filter((file) => /\bapiVersion\b|http\/versions\/(api-version|steps)\.ts/.test(read(file)));

  assert.deepEqual(knowing, []);
  assert.ok(files.length > 200);
});

test('every list of steps, and every table of statuses by version, has its tests', () => {
  const files = globSync('**/versions.ts', { cwd: engine, exclude: ['node_modules'] });

  const untested = files.flatMap((file) => {
    const names = [...read(file).matchAll(/^export const (\w+)/gm)].map(([, name]) => name!);
    const tests = read(file.replace('.ts', '.test.ts'));
    return names.filter((name) => !new RegExp(`^test\\w+\\('${name}', ${name},`, 'm').test(tests));
  });

  assert.deepEqual(untested, []);
  assert.ok(files.length > 1);
});

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const root = dirname(dirname(import.meta.dirname));
/** Packages that take memory and time of the daemon's start, although most daemons never need them. */
const LATE = ['undici'];
const STATIC_IMPORT = new RegExp(`^(?:import|export) (?!type )[^;]*from '(?:${LATE.join('|')})'`, 'mu');

test('the engine imports large packages where it first uses them', () => {
  const files = globSync('engine/**/*.ts', { cwd: root, exclude: ['**/node_modules/**', '**/*.test.ts'] });
  const early = files.filter((file) => STATIC_IMPORT.test(readFileSync(join(root, file), 'utf8')));

  assert.ok(files.length > 100);
  assert.deepEqual(early, []);
});

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';

const here = import.meta.dirname;
const SHIM_SOURCE = join(here, '../../../shim');
const SANITIZED = join(here, '../../../build/gantry-shim-sanitized');

test("the shim's tests pass under the address and undefined-behaviour sanitizers, without a report", () => {
  const built = spawnSync('make', ['-s', '-C', SHIM_SOURCE, 'sanitized'], { encoding: 'utf8' });
  assert.equal(built.status, 0, built.stderr);
  const help = spawnSync(SANITIZED, ['--nothing'], { encoding: 'utf8', env: { ASAN_OPTIONS: 'help=1' } });
  assert.match(help.stdout + help.stderr, /AddressSanitizer/, 'the build has no sanitizer');
  const reports = mkdtempSync(join(tmpdir(), 'gantry-sanitizer-'));
  using _reports = { [Symbol.dispose]: () => rmSync(reports, { recursive: true }) };
  const files = globSync('shim*.root.test.ts', { cwd: here }).filter((name) => name !== basename(import.meta.filename));

  const run = spawnSync(process.execPath, ['--test', ...files], {
    cwd: here,
    encoding: 'utf8',
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      GANTRY_SHIM: SANITIZED,
      GANTRY_RUNTIME_KILLS: '20',
      ASAN_OPTIONS: `log_path=${reports}/address`,
      UBSAN_OPTIONS: `log_path=${reports}/undefined:print_stacktrace=1`,
    },
  });

  const told = readdirSync(reports).map((name) => readFileSync(join(reports, name), 'utf8'));
  assert.deepEqual(told, []);
  assert.equal(run.status, 0, run.stdout);
});

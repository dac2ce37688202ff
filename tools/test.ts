/**
 * Format, lint, types, then all tests; the last line counts them.
 *
 * `--no-root` leaves out the files named `*.root.test.ts` and says so. Arguments name files or folders to run alone,
 * without the checks. A skipped test counts as failed in the full run. Files named `*.vm.test.ts` are for the machines of
 * `./gantry test vm`, which calls this with `--vm`.
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

import { findLeftovers } from './leftovers.ts';

const root = dirname(import.meta.dirname);
const inMachine = process.argv.includes('--vm');
const noRoot = process.argv.includes('--no-root');
const places = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const folders = ['engine', 'client', 'cli', 'limiter', 'gateway', 'tests', 'tools', 'bench'];

const allFiles = globSync(
  folders.map((folder) => `${folder}/**/*.test.ts`),
  { cwd: root, exclude: ['**/node_modules/**', ...(inMachine ? [] : ['**/*.vm.test.ts'])] },
).toSorted();
const chosen =
  places.length === 0 ? allFiles : allFiles.filter((file) => places.some((place) => file.startsWith(place)));
const left = noRoot ? chosen.filter((file) => file.endsWith('.root.test.ts')) : [];
const files = chosen.filter((file) => !left.includes(file));

let failed = 0;
if (places.length === 0) for (const name of ['format:check', 'lint', 'types']) check(name);
const leftBefore = new Set(findLeftovers());
const counts = await runTests(files);
failed += counts.failed + (noRoot ? 0 : counts.skipped);
if (counts.passed === 0) fail('no test was run');
if (!noRoot) {
  for (const leftover of findLeftovers().filter((found) => !leftBefore.has(found))) fail(`left behind: ${leftover}`);
}
if (left.length > 0) console.log(`not run without root: ${left.length} files`);
console.log(`${counts.passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

function check(name: string): void {
  const started = performance.now();
  const { status } = spawnSync('npm', ['run', '--silent', name], { cwd: root, stdio: 'inherit' });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (status === 0) console.log(`${name}: ok (${seconds} s)`);
  else fail(name);
}

function fail(what: string): void {
  failed += 1;
  console.log(`FAILED: ${what}`);
}

async function runTests(files: string[]): Promise<{ passed: number; failed: number; skipped: number }> {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const finished = Promise.withResolvers<void>();
  const events = run({
    cwd: root,
    files: files.map((file) => join(root, file)),
    concurrency: inMachine ? 1 : availableParallelism() + 1,
    // Of a file and of each test: so long that only what hangs meets it, on a machine ten times slower as well.
    timeout: inMachine ? 3_600_000 : 1_200_000,
  });
  events.on('test:pass', (event) => {
    if (event.details.type === 'suite') return;
    if (event.skip !== undefined || event.todo !== undefined) {
      counts.skipped += 1;
      console.log(`SKIPPED: ${event.name} (${event.file})`);
    } else {
      counts.passed += 1;
    }
  });
  events.on('test:fail', (event) => {
    if (event.details.type !== 'suite') counts.failed += 1;
  });
  events.once('end', () => finished.resolve());
  events.compose(spec).pipe(process.stdout, { end: false });
  await finished.promise;
  return counts;
}

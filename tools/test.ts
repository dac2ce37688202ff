/**
 * Format, lint, types, then all tests; the last line counts them.
 *
 * `--no-root` leaves out the files named `*.root.test.ts` and says so. Arguments name files or folders to run alone,
 * without the checks. A skipped test counts as failed in the full run. A file that failed beside others is tried
 * again by itself (`test-files.ts`). Files named `*.vm.test.ts` are for the machines of `./gantry test vm`, and those named
 * `*.long.test.ts`, which fetch what they need from the net, run only when their place is named.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';

import { unshare } from '@gantry/engine/host/namespaces.ts';
import { fetchNewerClients } from '@gantry/testing/clients/newer-clients.ts';

import { findLeftovers } from './leftovers.ts';
import { fetchForeignPackages } from './packages-project.ts';
import { runTestFiles } from './test-files.ts';

const SHOWN_FILES = 25;
/** Below these folders tests run docker's newer clients. */
const NEWER_CLIENTS_FOLDERS = ['tests/clients/', 'tests/build/buildkit/', 'tests/rootless/'];
const PACKAGES_TEST = 'tools/build-package.test.ts';

const root = dirname(import.meta.dirname);
const noRoot = process.argv.includes('--no-root');
const places = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const folders = ['template', 'engine', 'client', 'cli', 'limiter', 'gateway', 'page', 'tests', 'tools', 'bench'];

const allFiles = globSync(
  folders.map((folder) => `${folder}/**/*.test.ts`),
  { cwd: root, exclude: ['**/node_modules/**', '**/*.vm.test.ts'] },
).toSorted();
const chosen = allFiles.filter((file) => {
  if (file.endsWith('.long.test.ts')) return places.some((place) => place.startsWith(dirname(file)));
  return places.length === 0 || places.some((place) => file.startsWith(place));
});
const left = noRoot ? chosen.filter((file) => file.endsWith('.root.test.ts')) : [];
const files = chosen.filter((file) => !left.includes(file));

if (files.some((file) => NEWER_CLIENTS_FOLDERS.some((folder) => file.startsWith(folder)))) fetchClients();
if (files.includes(PACKAGES_TEST)) fetchForeignPackages();

// Links and rules of this run are then those of its namespace. Long tests fetch from the net.
if (process.getuid!() === 0 && !noRoot && !files.some((file) => file.endsWith('.long.test.ts'))) enterNamespaces();

const wrong = (places.length === 0 ? ['format:check', 'lint', 'types'] : []).filter((name) => !passes(name));
const started = performance.now();
const { passed, failed, skipped, told, seconds } = await runTestFiles(root, files, {
  atOnce: availableParallelism() + 2, // they wait for daemons and containers
  // Most of their time is that of elections, leases, sessions and windows of limits that end.
  waits: (file) => /^(?:engine|tests)\/cluster\/.*\.root\.|^(?:gateway|limiter)\//.test(file),
  waitingAtOnce: availableParallelism(),
  stallMs: 600_000,
  wholeMs: 5_000_000, // CI ends a run after 90 minutes, with what is installed before
  print: (said) => process.stdout.write(said),
  leftovers: noRoot ? () => [] : (folder) => findLeftovers(folder),
});
console.log(`\n${files.length} files in ${((performance.now() - started) / 60_000).toFixed(1)} min; the longest:`);
for (const each of seconds.slice(0, SHOWN_FILES)) console.log(`${each.seconds.toFixed(1)} s  ${each.file}`);
if (passed === 0) wrong.push('no test was run');
for (const each of wrong) console.log(`FAILED: ${each}`);
for (const line of told) console.log(line);
if (left.length > 0) console.log(`not run without root: ${left.length} files`);
const failures = wrong.length + failed + (noRoot ? 0 : skipped);
console.log(`${passed} passed, ${failures} failed`);
process.exit(failures === 0 ? 0 : 1);

/** Fetches docker's newer clients while the net is there. Only in CI do tests need it. */
function fetchClients(): void {
  try {
    fetchNewerClients();
  } catch (error) {
    console.log(`NOT TESTED: the docker clients of Debian 13 cannot be fetched: ${String(error)}`);
    if (process.env['CI'] !== undefined) process.exit(1);
  }
}

function passes(name: string): boolean {
  const started = performance.now();
  const { status } = spawnSync('npm', ['run', '--silent', name], { cwd: root, stdio: 'inherit' });
  if (status === 0) console.log(`${name}: ok (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  return status === 0;
}

/**
 * Moves this process, and the programs that it starts, into a network namespace of its own with a loopback, and a mount
 * namespace in which no plugins of others are found: dockerd looks for them in a fixed folder.
 */
function enterNamespaces(): void {
  unshare('net', 'mount');
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  execFileSync('mount', ['--make-rprivate', '/']);
  mkdirSync('/run/docker', { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', 'none', '/run/docker']);
}

/**
 * `./gantry test vm [bookworm|trixie] [v1] [PLACE…]`: runs the demo (`demo`) and the tests of the places in an ordinary
 * virtual machine with cgroup version 2 (or 1 on request), systemd and a distribution's kernel.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { bootMachine } from './boot.ts';
import { checkoutDisk, modulesDisk } from './disks.ts';
import { machineImage, SUITES, type Suite } from './image.ts';
import { CACHE } from './parts.ts';

/** The tests that depend on the kernel, cgroups and systemd; files of `tests/vm` are for version 2. */
const DEFAULT_PLACES = [
  ...[
    'demo',
    'tests/vm/',
    'engine/runtime/shim/shim-oom',
    'engine/system/system.root',
    'engine/containers/stats/stats.root',
  ],
  ...[
    'tests/docker-cli',
    'tests/build/build.root',
    'engine/networks/networks.root',
    'engine/networks/user-networks.root',
  ],
  ...['engine/networks/dns/', 'engine/volumes/volumes.root', 'GANTRY_CRASHES=100', 'tests/crash.root'],
];
const DEFAULT_PLACES_OF_VERSION_1 = ['demo', 'tests/vm-v1/'];

const started = performance.now();
const words = process.argv.slice(2);
const suite = SUITES.find((name) => name === words[0]);
if (suite !== undefined) words.shift();
const version = words[0] === 'v1' ? 1 : 2;
if (version === 1) words.shift();
mkdirSync(CACHE, { recursive: true });
const work = mkdtempSync(join(CACHE, 'work-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
const isGood = await testIn(suite ?? 'bookworm', words);
console.log(`${isGood ? 'passed' : 'FAILED'}, ${((performance.now() - started) / 60_000).toFixed(1)} min`);
process.exitCode = isGood ? 0 : 1;

async function testIn(suite: Suite, named: readonly string[]): Promise<boolean> {
  const image = await machineImage(suite, work);
  const usual = version === 1 ? DEFAULT_PLACES_OF_VERSION_1 : DEFAULT_PLACES;
  const disks = [await modulesDisk(work), await checkoutDisk(named.length === 0 ? usual : named, work)];
  return await bootMachine(image, disks, version);
}

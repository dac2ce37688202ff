/**
 * `./gantry test vm [bookworm|trixie] [v1|selinux] [PLACE…]`: runs the demo (`demo`) and the tests of the places in an ordinary
 * virtual machine with cgroup version 2 (or 1 on request, or SELinux instead of AppArmor), systemd and a distribution's kernel.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { bootMachine, type Kind } from './boot.ts';
import { checkoutDisk, modulesDisk } from './disks.ts';
import { machineImage, SUITES, type Suite } from './image.ts';
import { CACHE } from './parts.ts';

/** Places that run without named ones: those about the kernel, cgroups and systemd, and those that need a machine. */
const PLACES: Readonly<Record<Kind, readonly string[]>> = {
  v2: [
    ...['demo', 'tests/vm/', 'engine/runtime/shim/shim-oom', 'engine/system/system.root'],
    ...['engine/containers/stats/stats.root', 'tests/docker-cli', 'tests/build/build.root'],
    ...['engine/networks/networks.root', 'engine/networks/user-networks.root', 'engine/networks/dns/'],
    ...['engine/networks/bridge/ports/loopback-proxies', 'engine/networks/plugins/', 'engine/volumes/volumes.root'],
    ...['engine/cluster/', 'tests/cluster/', 'GANTRY_CRASHES=100', 'tests/crash.root'],
  ],
  v1: ['demo', 'tests/vm-v1/'],
  selinux: ['demo', 'tests/vm-selinux/'],
};

const started = performance.now();
const words = process.argv.slice(2);
const suite = SUITES.find((name) => name === words[0]);
if (suite !== undefined) words.shift();
const kind = words[0] === 'v1' || words[0] === 'selinux' ? words[0] : 'v2';
if (kind !== 'v2') words.shift();
mkdirSync(CACHE, { recursive: true });
const work = mkdtempSync(join(CACHE, 'work-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
const isGood = await testIn(suite ?? 'bookworm', words);
console.log(`${isGood ? 'passed' : 'FAILED'}, ${((performance.now() - started) / 60_000).toFixed(1)} min`);
process.exitCode = isGood ? 0 : 1;

async function testIn(suite: Suite, named: readonly string[]): Promise<boolean> {
  const image = await machineImage(suite, work);
  const disks = [await modulesDisk(work), await checkoutDisk(named.length === 0 ? PLACES[kind] : named, work)];
  return await bootMachine(image, disks, kind);
}

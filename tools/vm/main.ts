/**
 * `./gantry test vm [bookworm|trixie] [PLACE…]`: a virtual machine as people have them, with cgroup version 2, systemd
 * and a distribution's kernel; in it the demo (`demo`) and the tests of the places.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { bootMachine } from './boot.ts';
import { CACHE, checkoutDisk, machineImage, modulesDisk, SUITES, type Suite } from './image.ts';

/** Those whose result the kernel, the cgroups and systemd decide. */
const DEFAULT_PLACES = [
  ...['demo', 'tests/vm/', 'engine/runtime/shim/shim-oom', 'engine/system/system.root', 'tests/docker-cli'],
  ...['GANTRY_CRASHES=5', 'tests/crash.root'],
];

const words = process.argv.slice(2);
const named = SUITES.find((suite) => suite === words[0]);
mkdirSync(CACHE, { recursive: true });
const work = mkdtempSync(join(CACHE, 'work-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
process.exitCode = await testIn(named ?? 'bookworm', named === undefined ? words : words.slice(1));

async function testIn(suite: Suite, places: readonly string[]): Promise<number> {
  const image = await machineImage(suite, work);
  const checkout = await checkoutDisk(places.length === 0 ? DEFAULT_PLACES : places, work);
  return await bootMachine(image, [await modulesDisk(work), checkout]);
}

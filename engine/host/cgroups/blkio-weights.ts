import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../../lib/errors.ts';
import type { Cgroups } from './cgroups.ts';

/**
 * The writer of weights of block devices: `runtime`, or we ourselves if only the scheduler BFQ has them, whose files of
 * version 1 runtimes do not know. Undefined: this kernel has none.
 */
type BlkioWeights = 'runtime' | 'bfq' | undefined;

type DeviceWeight = Readonly<{ major: number; minor: number; weight: number }>;

let known: { weights: BlkioWeights } | undefined;

/** Found out once. The root of version 1 has no weight of BFQ, so a group is made and removed. */
export function blkioWeights({ version, controllers }: Cgroups): BlkioWeights {
  known ??= { weights: version === 2 ? version2(controllers) : version1(controllers) };
  return known.weights;
}

function version2(controllers: Cgroups['controllers']): BlkioWeights {
  return controllers.has('blkio') ? 'runtime' : undefined;
}

function version1(controllers: Cgroups['controllers']): BlkioWeights {
  const mount = controllers.get('blkio');
  if (mount === undefined) return undefined;
  if (existsSync(join(mount, 'blkio.weight'))) return 'runtime';
  const probe = join(mount, `gantry-probe-${process.pid}`);
  try {
    mkdirSync(probe, { recursive: true }); // a leftover of a killed daemon serves as well
    return existsSync(join(probe, 'blkio.bfq.weight')) ? 'bfq' : undefined;
  } catch (error) {
    if (hasCode(error, 'EROFS') || hasCode(error, 'EACCES') || hasCode(error, 'EPERM')) return undefined;
    throw error;
  } finally {
    if (existsSync(probe)) rmdirSync(probe);
  }
}

/** Whether BFQ schedules this device, or the whole of which it is a partition. */
export function isScheduledByBfq(major: number, minor: number): boolean {
  const device = `/sys/dev/block/${major}:${minor}`;
  const files = [`${device}/queue/scheduler`, `${device}/../queue/scheduler`];
  const file = files.find((path) => existsSync(path));
  return file !== undefined && readFileSync(file, 'utf8').includes('[bfq]');
}

/** Makes the group `path` of version 1 with these weights, before the runtime does; 0 is none. */
export function prepareBfqWeights(
  { controllers }: Cgroups,
  path: string,
  weight: number,
  devices: readonly DeviceWeight[],
): void {
  const folder = join(controllers.get('blkio')!, path);
  mkdirSync(folder, { recursive: true });
  if (weight > 0) writeFileSync(join(folder, 'blkio.bfq.weight'), `${weight}\n`, { flag: 'r+' });
  for (const { major, minor, weight: own } of devices) {
    writeFileSync(join(folder, 'blkio.bfq.weight_device'), `${major}:${minor} ${own}\n`, { flag: 'r+' });
  }
}

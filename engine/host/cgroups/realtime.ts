import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { EngineError } from '../../lib/errors.ts';
import type { Cgroups } from './cgroups.ts';
import { limitSupport } from './limit-support.ts';

/** The share of real-time processes, in microseconds; 0 leaves a number as it is. */
type Realtime = Readonly<{ periodUs: number; runtimeUs: number }>;

/**
 * Gives the groups down to `parent` this share, outermost first, made where they are missing: what a group has bounds
 * what those in it can have. Throws `failed` with dockerd's words when the kernel refuses it.
 */
export function prepareRealtime(cgroups: Cgroups, parent: string, { periodUs, runtimeUs }: Realtime): void {
  if (periodUs === 0 && runtimeUs === 0) return;
  const what = 'daemon-scoped cpu-rt-period and cpu-rt-runtime are not';
  if (cgroups.version === 2) throw new EngineError('failed', `${what} implemented for cgroup v2`);
  if (!limitSupport(cgroups).realtime) throw new EngineError('failed', `${what} supported by the kernel`);
  setShare(cgroups.controllers.get('cpu')!, join('/', parent), { periodUs, runtimeUs });
}

function setShare(mount: string, path: string, share: Realtime): void {
  if (path === '/') return;
  setShare(mount, dirname(path), share);
  const folder = join(mount, path);
  mkdirSync(folder, { recursive: true });
  put(join(folder, 'cpu.rt_period_us'), share.periodUs);
  put(join(folder, 'cpu.rt_runtime_us'), share.runtimeUs);
}

function put(file: string, microseconds: number): void {
  if (microseconds === 0) return;
  try {
    writeFileSync(file, `${microseconds}\n`, { flag: 'r+' });
  } catch (error) {
    const message = 'unable to init CPU RT controller: the kernel refuses';
    throw new EngineError('failed', `${message} ${microseconds} in ${file}`, { cause: error });
  }
}

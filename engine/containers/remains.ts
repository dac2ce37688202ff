import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { Config } from '../config/config.ts';
import { detectCgroups, processesIn, removeCgroup } from '../host/cgroups.ts';
import { hasCode } from '../lib/errors.ts';
import { cgroupPathOf } from './places.ts';
import type { Container } from './store.ts';

const execute = promisify(execFile);

/** Ends and removes what a killed shim has left of a container: its processes, the runtime's record, its cgroup. */
export async function removeRemains(config: Config, container: Container | undefined, id: string): Promise<void> {
  const cgroups = detectCgroups();
  const path = container === undefined ? `/gantry/${id}` : cgroupPathOf(container);
  for (const pid of processesIn(cgroups, path)) kill(pid);
  const root = join(config.execRoot, 'runtime');
  try {
    await execute('runc', ['--root', root, 'delete', '--force', id]);
  } catch (error) {
    // The runtime does not know it any more: then it is gone already.
    if (!(error instanceof Error)) throw error;
  }
  removeCgroup(cgroups, path);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

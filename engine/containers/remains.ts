import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import { detectCgroups, processesIn, removeCgroup } from '../host/cgroups.ts';
import { hasCode } from '../lib/errors.ts';
import type { Runtime } from '../runtime/runtimes.ts';

const execute = promisify(execFile);
/** A killed process leaves its cgroup when its parent, which is not ours any more, has taken note of its end. */
const REAPING_MS = [10, 50, 200, 1000];

/**
 * Ends and removes what a killed shim has left of a container: its processes, the runtime's record, its cgroup. Returns
 * whether there were processes.
 */
export async function removeRemains(runtime: Runtime, id: string, cgroupPath: string): Promise<boolean> {
  const cgroups = detectCgroups();
  const pids = processesIn(cgroups, cgroupPath);
  for (const pid of pids) kill(pid);
  try {
    await execute(runtime.path, ['--root', runtime.root, 'delete', '--force', id]);
  } catch (error) {
    // The runtime does not know it any more: then it is gone already.
    if (!(error instanceof Error)) throw error;
  }
  await rm(join(runtime.root, id), { recursive: true, force: true });
  for (const delayMs of REAPING_MS) {
    try {
      removeCgroup(cgroups, cgroupPath);
      return pids.length > 0;
    } catch (error) {
      if (!hasCode(error, 'EBUSY')) throw error;
      await setTimeout(delayMs);
    }
  }
  removeCgroup(cgroups, cgroupPath);
  return pids.length > 0;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

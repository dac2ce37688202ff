import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import { detectCgroups, freezeCgroup, hasCgroup, processesIn, removeCgroup } from '../../host/cgroups/cgroups.ts';
import { hasCode } from '../../lib/errors.ts';
import type { Runtime } from '../../runtime/runtimes.ts';
import { runtimeEnvironment } from '../../runtime/shim/shim-program.ts';

const execute = promisify(execFile);
/** A killed process leaves its cgroup when its new parent has reaped it. */
const REAPING_MS = [5, 10, 50, 200, 1000, 2000];
const DELETE_TIMEOUT_MS = 30_000;

/**
 * Ends every process in a container's cgroup and below it, and waits until they are gone. Returns whether there was
 * one. Throws `EBUSY` when one does not go.
 *
 * Frozen processes cannot fork, so none is missed; SIGKILL takes effect when they are thawed.
 */
export async function endProcesses(cgroupPath: string): Promise<boolean> {
  const cgroups = detectCgroups();
  let found = false;
  for (const delayMs of REAPING_MS) {
    freezeCgroup(cgroups, cgroupPath, true);
    const pids = processesIn(cgroups, cgroupPath);
    for (const pid of pids) kill(pid);
    freezeCgroup(cgroups, cgroupPath, false);
    if (pids.length === 0) return found;
    found = true;
    await setTimeout(delayMs);
  }
  const pids = processesIn(cgroups, cgroupPath);
  if (pids.length === 0) return found;
  throw Object.assign(new Error(`processes of ${cgroupPath} do not end: ${pids.join(', ')}`), { code: 'EBUSY' });
}

/** Removes the remains if the shim could not do it in time, or was killed; nearly free if nothing is left. */
export async function removeIfLeft(runtime: Runtime, id: string, cgroupPath: string): Promise<void> {
  const isLeft = hasCgroup(detectCgroups(), cgroupPath) || existsSync(join(runtime.root, id));
  if (isLeft) await removeRemains(runtime, id, cgroupPath);
}

/** Removes the remains of a container after the death of its shim: its processes, the runtime's record, its cgroup. */
export async function removeRemains(runtime: Runtime, id: string, cgroupPath: string): Promise<void> {
  await endProcesses(cgroupPath);
  try {
    const env = runtimeEnvironment(runtime.root);
    await execute(runtime.path, ['--root', runtime.root, 'delete', '--force', id], { timeout: DELETE_TIMEOUT_MS, env });
  } catch (error) {
    // The runtime has no record of it, or is not installed any more: its files are removed below.
    if (!(error instanceof Error)) throw error;
  }
  await rm(join(runtime.root, id), { recursive: true, force: true });
  const cgroups = detectCgroups();
  for (const delayMs of REAPING_MS) {
    try {
      removeCgroup(cgroups, cgroupPath);
      return;
    } catch (error) {
      if (!hasCode(error, 'EBUSY')) throw error;
      await setTimeout(delayMs);
    }
  }
  removeCgroup(cgroups, cgroupPath);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { detectCgroups, freezeCgroup, hasCgroup, processesIn, removeCgroup } from '../../host/cgroups/cgroups.ts';
import { systemClock } from '../../lib/clock.ts';
import { retry } from '../../lib/concurrency/retry.ts';
import { hasCode } from '../../lib/errors.ts';
import type { Runtime } from '../../runtime/runtimes.ts';
import { runtimeEnvironment } from '../../runtime/shim/shim-program.ts';

const execute = promisify(execFile);
/** A killed process leaves its cgroup when its new parent has reaped it. */
const REAPING = {
  clock: systemClock,
  timeoutMs: 3000,
  delayMs: 5,
  maxDelayMs: 1000,
  isTransient: (error: unknown) => hasCode(error, 'EBUSY'),
};
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
  await retry(REAPING, () => {
    freezeCgroup(cgroups, cgroupPath, true);
    const pids = processesIn(cgroups, cgroupPath);
    for (const pid of pids) kill(pid);
    freezeCgroup(cgroups, cgroupPath, false);
    if (pids.length === 0) return;
    found = true;
    throw Object.assign(new Error(`processes of ${cgroupPath} do not end: ${pids.join(', ')}`), { code: 'EBUSY' });
  });
  return found;
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
  await retry(REAPING, () => removeCgroup(cgroups, cgroupPath));
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

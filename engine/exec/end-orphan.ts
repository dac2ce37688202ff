import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { cgroupPathOf, shimFolder } from '../containers/runs/places.ts';
import type { Engine } from '../engine.ts';
import { detectCgroups, processesIn } from '../host/cgroups/cgroups.ts';
import { hasCode } from '../lib/errors.ts';

type Needs = Pick<Engine, 'background' | 'config' | 'containers' | 'execs'>;

/** The code of a process whose end was not observed, or that was killed because its end could not be observed. */
const [LOST_CODE, KILLED_CODE] = [255, 137];

/**
 * Ends the process of an exec whose shim was killed, because its streams and its exit code are lost. Returns the code
 * to record.
 */
export async function endOrphan(engine: Needs, id: string): Promise<number> {
  let exitCode = LOST_CODE;
  await engine.background.run('end an exec without a shim', { exec: id }, () => {
    if (endProcess(engine, id)) exitCode = KILLED_CODE;
  }).done;
  return exitCode;
}

function endProcess({ config, containers, execs }: Needs, id: string): boolean {
  const exec = execs.get(id);
  const container = containers.get(exec?.containerId ?? '');
  if (exec === undefined || container === undefined) return false;
  const pid = exec.state.status === 'running' ? exec.state.pid : startedPid(shimFolder(config, id));
  // The pid may have been reused, so only a process of this container is killed.
  if (pid === undefined || !processesIn(detectCgroups(), cgroupPathOf(container)).includes(pid)) return false;
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch (error) {
    if (hasCode(error, 'ESRCH')) return false;
    throw error;
  }
}

/** Reads what the runtime wrote about a start whose outcome is unknown. */
function startedPid(directory: string): number | undefined {
  try {
    return Number(readFileSync(join(directory, 'pid'), 'utf8'));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Config } from '../config/daemon-config.ts';
import { cgroupPathOf, shimFolder } from '../containers/runs/places.ts';
import type { ContainerStore } from '../containers/store.ts';
import { detectCgroups, processesIn } from '../host/cgroups.ts';
import type { Background } from '../lib/background.ts';
import { hasCode } from '../lib/errors.ts';
import type { ExecStore } from './store.ts';

type Needs = { background: Background; config: Config; containers: ContainerStore; execs: ExecStore };

/** Of a process whose end nobody saw, and of one that was ended because nobody would see its end. */
const [LOST_CODE, KILLED_CODE] = [255, 137];

/**
 * Ends the process of an exec whose shim was killed: nobody holds its streams, and nobody would learn its exit code.
 * Returns the code to record.
 */
export async function endLost(engine: Needs, id: string): Promise<number> {
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
  // The number may be another process's by now: only one of this container is meant.
  if (pid === undefined || !processesIn(detectCgroups(), cgroupPathOf(container)).includes(pid)) return false;
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch (error) {
    if (hasCode(error, 'ESRCH')) return false;
    throw error;
  }
}

/** What the runtime has written of a start whose end nobody was told. */
function startedPid(directory: string): number | undefined {
  try {
    return Number(readFileSync(join(directory, 'pid'), 'utf8'));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

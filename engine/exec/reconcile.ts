import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { shimFolder } from '../containers/places.ts';
import { hasCode } from '../lib/errors.ts';
import { Shim } from '../runtime/shim.ts';
import { endLost } from './lost.ts';
import { followExec, type ExecNeeds } from './start.ts';
import type { Exec } from './store.ts';

/** At the daemon's start: watches the execs that lived on, and learns how the others ended. */
export async function reconcileExecs(engine: ExecNeeds): Promise<void> {
  for (const exec of engine.execs.all()) {
    if (engine.containers.get(exec.containerId) === undefined) engine.execs.delete(exec.id);
    else if (isUnderWay(exec)) await findAgain(engine, exec);
  }
  await removeFoldersOfEnded(engine);
}

function isUnderWay(exec: Exec | undefined): boolean {
  return exec?.state.status === 'running' || exec?.state.status === 'starting';
}

/** The last daemon had recorded the end, and died before the folder was away. */
async function removeFoldersOfEnded({ config, execs }: ExecNeeds): Promise<void> {
  const folders = await readdir(join(config.execRoot, 'shims')).catch(orNothing);
  for (const id of folders.filter((name) => !isUnderWay(execs.get(name)))) {
    const directory = shimFolder(config, id);
    if (!existsSync(join(directory, 'process.json'))) continue; // a container's
    const shim = await Shim.reconnect(directory, 'exec');
    await shim?.end();
    await rm(directory, { recursive: true, force: true });
  }
}

function orNothing(error: unknown): string[] {
  if (hasCode(error, 'ENOENT')) return [];
  throw error;
}

async function findAgain(engine: ExecNeeds, { id }: Exec): Promise<void> {
  const directory = shimFolder(engine.config, id);
  const shim = await Shim.reconnect(directory, 'exec');
  if (shim?.phase === 'started' || shim?.phase === 'exited') {
    followExec(engine, id, shim);
    return;
  }
  const exitCode = Shim.readStatus(directory)?.exitCode ?? (await endLost(engine, id));
  engine.execs.change(id, (current) => ({
    ...current,
    state: { status: 'ended', exitCode, endedAt: engine.clock.now() },
  }));
  await shim?.end();
  await rm(directory, { recursive: true, force: true });
}

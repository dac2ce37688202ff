import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { shimFolder } from '../containers/runs/places.ts';
import { settlesWithin } from '../lib/clock.ts';
import type { Task } from '../lib/concurrency/background.ts';
import { hasCode } from '../lib/errors.ts';
import { removeShimFolder } from '../runtime/shim/shim-folder.ts';
import { Shim } from '../runtime/shim/shim.ts';
import { endOrphan } from './end-orphan.ts';
import { followExec, type ExecNeeds } from './start.ts';
import type { Exec } from './store.ts';

/** The daemon's start waits at most this long; the rest continues in the background. */
const TIMEOUT_SECONDS = 0.3;

/** At the daemon's start: watches the execs that are still running, and finds out how the others ended. */
export async function reconcileExecs(engine: ExecNeeds): Promise<void> {
  const containers = engine.containers.ids();
  const tasks: Task[] = [];
  for (const exec of engine.execs.all()) {
    if (!containers.has(exec.containerId)) engine.execs.delete(exec.id);
    else if (isUnderWay(exec)) tasks.push(inBackground(engine, exec.id, async () => await findAgain(engine, exec)));
  }
  for (const id of await foldersOfEnded(engine)) {
    tasks.push(inBackground(engine, id, async () => await removeFolder(engine, id)));
  }
  const all = Promise.all(tasks.map(async ({ done }) => await done)).then(() => undefined);
  await settlesWithin(all, TIMEOUT_SECONDS, engine.clock);
}

function inBackground({ background }: ExecNeeds, id: string, work: () => Promise<void>): Task {
  return background.untilDone('find out how an exec ended', { exec: id }, work);
}

function isUnderWay(exec: Exec | undefined): boolean {
  return exec?.state.status === 'running' || exec?.state.status === 'starting';
}

/** The last daemon had recorded the end, but died before it removed the folder. */
async function foldersOfEnded({ config, execs }: ExecNeeds): Promise<string[]> {
  const folders = await readdir(join(config.execRoot, 'shims')).catch(orNothing);
  const unread = new Set(execs.idsSetAside());
  return folders.filter(
    (id) => !isUnderWay(execs.get(id)) && !unread.has(id) && existsSync(join(shimFolder(config, id), 'process.json')), // else a container's
  );
}

async function removeFolder({ config }: ExecNeeds, id: string): Promise<void> {
  const directory = shimFolder(config, id);
  const shim = await Shim.reconnect(directory, 'exec');
  await shim?.end();
  await removeShimFolder(directory);
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
  const exitCode = Shim.readStatus(directory)?.exitCode ?? (await endOrphan(engine, id));
  engine.execs.change(id, (current) => ({
    ...current,
    state: { status: 'ended', exitCode, endedAt: engine.clock.now() },
  }));
  await shim?.end();
  await removeShimFolder(directory);
}

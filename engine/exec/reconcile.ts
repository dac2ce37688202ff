import { rm } from 'node:fs/promises';

import { shimFolder } from '../containers/places.ts';
import { Shim } from '../runtime/shim.ts';
import { followExec, type ExecNeeds } from './start.ts';
import type { Exec } from './store.ts';

/** At the daemon's start: watches the execs that lived on, and learns how the others ended. */
export async function reconcileExecs(engine: ExecNeeds): Promise<void> {
  for (const exec of engine.execs.all()) {
    if (engine.containers.get(exec.containerId) === undefined) engine.execs.delete(exec.id);
    else if (exec.state.status === 'running' || exec.state.status === 'starting') await findAgain(engine, exec);
  }
}

async function findAgain(engine: ExecNeeds, { id }: Exec): Promise<void> {
  const directory = shimFolder(engine.config, id);
  const shim = await Shim.reconnect(directory, 'exec');
  if (shim?.phase === 'started' || shim?.phase === 'exited') {
    void followExec(engine, id, shim);
    return;
  }
  const exitCode = Shim.readStatus(directory)?.exitCode ?? 255;
  engine.execs.change(id, (current) => ({
    ...current,
    state: { status: 'ended', exitCode, endedAt: engine.clock.now() },
  }));
  await shim?.abandon();
  await rm(directory, { recursive: true, force: true });
}

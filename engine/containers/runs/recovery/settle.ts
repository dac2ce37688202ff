import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';

import { Shim, type Started } from '../../../runtime/shim/shim.ts';
import { unpauseContainer } from '../../lifecycle/pause.ts';
import { finishRemoval, type RemoveNeeds } from '../../lifecycle/remove.ts';
import { stopContainer, type StopNeeds } from '../../lifecycle/stop.ts';
import { transition } from '../../state.ts';
import type { Container } from '../../store.ts';
import { followRun, recordEnd, recordLost } from '../end.ts';
import { thaw } from '../freezer.ts';
import { revertCutOffUpdate } from '../live-limits.ts';
import { cgroupPathOf, shimFolder } from '../places.ts';
import { unmountVolumes } from '../preparation/volume-mounts.ts';
import { removeIfLeft } from '../remove-remains.ts';
import { recordRun, type StartNeeds } from '../start.ts';

export type SettleNeeds = StartNeeds & StopNeeds & RemoveNeeds;

/** The time that an interrupted start may still take. */
const START_TIMEOUT_SECONDS = 30;

/** A container with a shim goes on. */
export async function resume(engine: SettleNeeds, container: Container, shim: Shim): Promise<void> {
  const { id, state } = container;
  if (state.status === 'starting' && !(await finishStart(engine, container, shim))) return;
  await revertCutOffUpdate(engine, container);
  followRun(engine, id, shim);
  if (state.status === 'paused' && state.pausedFor !== undefined) unpauseContainer(engine, id);
  else if (state.status !== 'paused') engine.health.resume(container);
  if (state.status === 'running') thaw(container); // a pause may have been interrupted
  if (state.status === 'stopping') {
    engine.background.run('finish a stop', { container: id }, async () => await stopContainer(engine, id));
  }
}

/** The last daemon died between the start and the record of it. Returns whether there was a process. */
async function finishStart(engine: SettleNeeds, container: Container, shim: Shim): Promise<boolean> {
  const started = await startOf(engine, shim);
  if (started === undefined) {
    await shim.end();
    await settle(engine, container);
    return false;
  }
  recordRun(engine, container.id, { status: 'running', ...started });
  return true;
}

async function startOf(engine: SettleNeeds, shim: Shim): Promise<Started | undefined> {
  const late = Promise.withResolvers<undefined>();
  using _timer = engine.clock.after(START_TIMEOUT_SECONDS * 1000, () => late.resolve(undefined));
  const ended = shim.exited.then(({ finishedAt }) => ({ pid: 0, startedAt: finishedAt }));
  // Both fail when the runtime could not start it.
  return await Promise.any([shim.started, ended, late.promise]).catch(() => undefined);
}

/** A container without a shim: the work that its state claims is recorded as ended, finished or undone. */
export async function settle(engine: SettleNeeds, container: Container): Promise<void> {
  const { id, state } = container;
  const folder = shimFolder(engine.config, id);
  switch (state.status) {
    case 'running':
    case 'paused':
    case 'stopping':
      await settleEnd(engine, container, folder);
      return;
    case 'starting':
      await undoStart(engine, container, folder);
      return;
    case 'removing':
      await finishRemoval(engine, container);
      return;
    case 'created':
    case 'restarting':
    case 'exited':
      if (existsSync(folder)) await clean(engine, container, folder);
      return;
  }
}

async function settleEnd(engine: SettleNeeds, container: Container, folder: string): Promise<void> {
  const status = Shim.readStatus(folder);
  if (status === undefined) {
    await recordLost(engine, container);
    return;
  }
  recordEnd(engine, container.id, status);
  await clean(engine, container, folder);
}

async function undoStart(engine: SettleNeeds, container: Container, folder: string): Promise<void> {
  const status = Shim.readStatus(folder);
  const { id, state } = container;
  if (status !== undefined) {
    recordRun(engine, id, { status: 'running', pid: 0, startedAt: status.finishedAt });
    recordEnd(engine, id, status);
  } else if (state.status === 'starting') {
    engine.containers.change(id, (current) => ({ ...current, state: transition(current.state, state.from) }));
  }
  await clean(engine, container, folder);
}

/** The shim may have died before the runtime had deleted its container. */
async function clean(engine: SettleNeeds, container: Container, folder: string): Promise<void> {
  const { id, hostConfig } = container;
  await removeIfLeft(engine.runtimes.toRemove(hostConfig.Runtime), id, cgroupPathOf(container));
  await rm(folder, { recursive: true, force: true });
  await unmountVolumes(engine, container).done;
}

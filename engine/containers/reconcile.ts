import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import { reconcile as reconcileNetworks } from '../networks/sandbox.ts';
import { Shim, type Started } from '../runtime/shim.ts';
import { thaw } from './freezer.ts';
import { cgroupPathOf, shimFolder } from './places.ts';
import { removeIfLeft, removeRemains } from './remains.ts';
import { finishRemoval, removeVolumesOfNobody, type RemoveNeeds } from './remove.ts';
import { recordRun, type StartNeeds } from './start.ts';
import { isAlive, transition } from './state.ts';
import { stopContainer, type StopNeeds } from './stop.ts';
import type { Container } from './store.ts';

type Needs = StartNeeds &
  StopNeeds &
  RemoveNeeds & {
    log: { error(details: object, message: string): void; warn(details: object, message: string): void };
  };

type Survivor = { container: Container; shim: Shim };

/** How long a start that was cut off may still take. */
const START_SECONDS = 30;

/**
 * At the daemon's start: finds the shims that lived on, records the exits that happened meanwhile, finishes or undoes
 * what was half done, and sets up the networks for the containers that run.
 */
export async function reconcileContainers(engine: Needs): Promise<void> {
  await removeOrphanFolders(engine);
  const known = engine.containers.all();
  const expected = known.filter(({ state }) => isAlive(state) || state.status === 'starting');
  const found = await Promise.all(expected.map(async (container) => await reconnect(engine, container)));
  const survivors = found.filter((survivor) => survivor !== undefined);
  const liveIds = new Set(survivors.map(({ container }) => container.id));
  await reconcileNetworks(engine, liveIds);
  await Promise.all(survivors.map(async (survivor) => await resume(engine, survivor)));
  await Promise.all(
    known.filter(({ id }) => !liveIds.has(id)).map(async (container) => await settle(engine, container)),
  );
  await removeVolumesOfNobody(engine);
}

async function reconnect(engine: Needs, container: Container): Promise<Survivor | undefined> {
  const shim = await Shim.reconnect(shimFolder(engine.config, container.id));
  return shim === undefined ? undefined : { container, shim };
}

/** A container whose shim is there goes on as if nothing had been. */
async function resume(engine: Needs, { container, shim }: Survivor): Promise<void> {
  const { id, state } = container;
  if (state.status === 'starting' && !(await finishStart(engine, container, shim))) return;
  engine.shims.add(id, shim);
  engine.exits.follow(id, shim);
  if (state.status === 'running') thaw(container); // a pause may have been cut off
  if (state.status === 'stopping') {
    engine.background.run('finish a stop', { container: id }, async () => await stopContainer(engine, id));
  }
}

/** The last daemon died between its order to start and the record of it. Returns whether there was a process. */
async function finishStart(engine: Needs, container: Container, shim: Shim): Promise<boolean> {
  const started = await startOf(engine, shim);
  if (started === undefined) {
    await shim.end();
    await settle(engine, container);
    return false;
  }
  recordRun(engine, container.id, { status: 'running', ...started }, 0);
  return true;
}

async function startOf(engine: Needs, shim: Shim): Promise<Started | undefined> {
  const late = Promise.withResolvers<undefined>();
  using _timer = engine.clock.after(START_SECONDS * 1000, () => late.resolve(undefined));
  const ended = shim.exited.then(({ finishedAt }) => ({ pid: 0, startedAt: finishedAt }));
  // Both fail when the runtime could not start it.
  return await Promise.any([shim.started, ended, late.promise]).catch(() => undefined);
}

/** A container without a shim: what its state promised is recorded as ended, finished or undone. */
async function settle(engine: Needs, container: Container): Promise<void> {
  const { id, state } = container;
  const folder = shimFolder(engine.config, id);
  switch (state.status) {
    case 'running':
    case 'paused':
    case 'stopping':
      await recordEnd(engine, container, folder);
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

async function recordEnd(engine: Needs, container: Container, folder: string): Promise<void> {
  const status = Shim.readStatus(folder);
  if (status === undefined) {
    await engine.exits.recordLost(container);
    return;
  }
  engine.exits.record(container.id, status);
  await clean(engine, container, folder);
}

async function undoStart(engine: Needs, container: Container, folder: string): Promise<void> {
  const status = Shim.readStatus(folder);
  const { id, state } = container;
  if (status !== undefined) {
    recordRun(engine, id, { status: 'running', pid: 0, startedAt: status.finishedAt }, 0);
    engine.exits.record(id, status);
  } else if (state.status === 'starting') {
    engine.containers.change(id, (current) => ({ ...current, state: transition(current.state, state.from) }));
  }
  await clean(engine, container, folder);
}

/** The shim may have died before the runtime had taken its container away. */
async function clean(engine: Needs, container: Container, folder: string): Promise<void> {
  const { id, hostConfig } = container;
  await removeIfLeft(engine.runtimes.get(hostConfig.Runtime), id, cgroupPathOf(container));
  await rm(folder, { recursive: true, force: true });
}

/** Folders of containers that have no record: their creation was cut off, or their removal. */
async function removeOrphanFolders(engine: Needs): Promise<void> {
  const { dataRoot, execRoot } = engine.config;
  for (const id of list(join(dataRoot, 'containers'))) {
    if (engine.containers.get(id) === undefined) await rm(join(dataRoot, 'containers', id), { recursive: true });
  }
  const shims = join(execRoot, 'shims');
  for (const id of list(shims)) {
    // Those of execs are their own domain's.
    if (engine.containers.get(id) !== undefined || existsSync(join(shims, id, 'process.json'))) continue;
    engine.log.warn({ container: id }, 'a container without a record is ended');
    await removeRemains(engine.runtimes.get(), id, `/gantry/${id}`);
    await rm(join(shims, id), { recursive: true, force: true });
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}

import { rm } from 'node:fs/promises';

import type { Config } from '../config/daemon-config.ts';
import type { Events } from '../events/events.ts';
import type { ExecStore } from '../exec/store.ts';
import type { Layers } from '../layers/layers.ts';
import type { Background } from '../lib/background.ts';
import { EngineError } from '../lib/errors.ts';
import type { KeyLock } from '../lib/key-lock.ts';
import type { VolumeDrivers } from '../volumes/drivers.ts';
import { removeVolume, type VolumeUsage } from '../volumes/remove.ts';
import type { Volume, VolumeStore } from '../volumes/store.ts';
import { emitContainer } from './container-events.ts';
import { killContainer } from './kill.ts';
import { startOver } from './runs/alive.ts';
import { containerFolder } from './runs/places.ts';
import type { Runs } from './runs/runs.ts';
import { isAlive, transition, exitCodeOf } from './state.ts';
import type { Container, ContainerStore, MountPoint } from './store.ts';

export type RemoveNeeds = {
  background: Background;
  config: Config;
  containers: ContainerStore;
  events: Events;
  execs: ExecStore;
  layers: Layers;
  locks: KeyLock;
  runs: Runs;
  volumes: VolumeStore;
  volumeDrivers: VolumeDrivers;
  volumeUsage: VolumeUsage;
};

/**
 * Removes a container: its record first, its files in the background, `destroy` after the answer. Throws `conflict`
 * for one that runs, or is about to again, without `force`.
 */
export async function removeContainer(
  engine: RemoveNeeds,
  ref: string,
  { force = false, volumes = false }: { force?: boolean; volumes?: boolean } = {},
): Promise<void> {
  const { id } = engine.containers.find(ref);
  if (force) await endIfAlive(engine, id);
  using _lock = await engine.locks.hold(id);
  // One commit: a refused removal has changed nothing, and one that was cut off keeps the volumes that were to stay.
  const removed = engine.containers.together(() => {
    const container = claim(engine.containers, id);
    if (!volumes) keepVolumes(engine, container);
    deleteRecords(engine, id);
    return container;
  });
  await removeBelongings(engine, removed);
}

/** A removal that an older daemon has claimed and not finished. */
export async function finishRemoval(engine: RemoveNeeds, container: Container): Promise<void> {
  engine.containers.together(() => deleteRecords(engine, container.id));
  await removeBelongings(engine, container);
}

function deleteRecords({ containers, execs }: RemoveNeeds, id: string): void {
  execs.deleteOf(id);
  containers.delete(id);
}

/** The runtime needs some milliseconds to take away what is left of the last run; nobody has to wait for that. */
async function removeBelongings(engine: RemoveNeeds, container: Container): Promise<void> {
  const { background } = engine;
  const { id, mounts } = container;
  const about = { container: id };
  const run = engine.runs.of(id);
  run.tellSettled(); // a removal can end the wait for the next run of a restart policy
  run.cancelClients();
  background.untilDone('remove the files of a container', about, async () => {
    await run.cleaned();
    engine.runs.forget(id);
    await rm(containerFolder(engine.config, id), { recursive: true, force: true });
    await engine.layers.remove(id); // the last: until then the next daemon knows that all this was to go
  });
  // What cannot be removed now is found by the next daemon: it is still nobody's.
  await background.run('remove the volumes of a container', about, async () => {
    await removeAnonymousVolumes(engine, mounts);
  }).done;
  // Clients that wait for it have asked on another connection: told before the answer, it would end them too early.
  background.after(0, 'tell that a container is removed', about, () =>
    emitContainer(engine.events, 'destroy', container),
  );
}

/** They are nobody's now, until a user removes them. */
function keepVolumes({ volumes }: RemoveNeeds, { mounts }: Container): void {
  for (const { type, name = '' } of mounts) if (type === 'volume') volumes.keep(name);
}

async function endIfAlive(engine: RemoveNeeds, id: string): Promise<void> {
  try {
    await startOver(engine, id);
    const state = engine.containers.get(id)?.state;
    const canRun = state !== undefined && (isAlive(state) || state.status === 'restarting');
    if (canRun) await killContainer(engine, id);
  } catch (error) {
    // It ended by itself in between.
    if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
    await engine.runs.of(id).settled();
  }
}

function claim(containers: ContainerStore, id: string): Container {
  return containers.change(id, (current) => {
    const { state } = current;
    if (state.status === 'paused') throw refusal(id, 'paused', 'Unpause and then stop');
    if (state.status === 'restarting') throw refusal(id, 'restarting', 'Stop');
    if (isAlive(state)) throw refusal(id, 'running', 'Stop');
    if (state.status === 'removing')
      throw new EngineError('conflict', `removal of container ${id} is already in progress`);
    return { ...current, state: transition(state, { status: 'removing', exitCode: exitCodeOf(state) }) };
  });
}

function refusal(id: string, kind: string, advice: string): EngineError {
  return new EngineError(
    'conflict',
    `You cannot remove a ${kind} container ${id}. ${advice} the container before attempting removal or force remove`,
  );
}

type VolumeNeeds = Pick<RemoveNeeds, 'events' | 'volumes' | 'volumeDrivers' | 'volumeUsage'>;

/** Those that were made for one container alone, unless another one has borrowed them. */
export async function removeAnonymousVolumes(engine: VolumeNeeds, mounts: readonly MountPoint[]): Promise<void> {
  for (const { name = '' } of mounts) await removeIfUnused(engine, engine.volumes.get(name));
}

/** At the daemon's start: what a creation or a removal that was cut off has left. */
export async function removeVolumesOfNobody(engine: VolumeNeeds): Promise<void> {
  for (const volume of engine.volumes.all()) await removeIfUnused(engine, volume);
}

async function removeIfUnused(engine: VolumeNeeds, volume: Volume | undefined): Promise<void> {
  if (volume?.anonymous !== true || engine.volumeUsage.usersOf(volume.name).length > 0) return;
  if (engine.volumeUsage.isIncomplete()) return;
  await removeVolume(engine, volume.name);
}

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

/** Finishes a removal that an earlier daemon has claimed. */
export async function finishRemoval(engine: RemoveNeeds, container: Container): Promise<void> {
  engine.containers.together(() => deleteRecords(engine, container.id));
  await removeBelongings(engine, container);
}

function deleteRecords({ containers, execs }: RemoveNeeds, id: string): void {
  execs.deleteOf(id);
  containers.delete(id);
}

/** The clean-up of the last run takes some milliseconds, so files are removed in the background. */
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
    await engine.layers.remove(id); // the last step: until then the next daemon knows that the rest is to be removed
  });
  // The next daemon removes volumes that cannot be removed now: they are still anonymous.
  await background.run('remove the volumes of a container', about, async () => {
    await removeAnonymousVolumes(engine, mounts);
  }).done;
  // Clients wait for the event on another connection, and must not get it before the answer.
  background.after(0, 'tell that a container is removed', about, () =>
    emitContainer(engine.events, 'destroy', container),
  );
}

/** They become ordinary volumes, which a user removes. */
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
    // It ended meanwhile.
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

/** Removes volumes made for this container only, unless another one uses them. */
export async function removeAnonymousVolumes(engine: VolumeNeeds, mounts: readonly MountPoint[]): Promise<void> {
  for (const { name = '' } of mounts) await removeIfUnused(engine, engine.volumes.get(name));
}

/** At the daemon's start: removes anonymous volumes of interrupted creations and removals. */
export async function removeVolumesOfNobody(engine: VolumeNeeds): Promise<void> {
  for (const volume of engine.volumes.all()) await removeIfUnused(engine, volume);
}

async function removeIfUnused(engine: VolumeNeeds, volume: Volume | undefined): Promise<void> {
  if (volume?.anonymous !== true || engine.volumeUsage.usersOf(volume.name).length > 0) return;
  if (engine.volumeUsage.isIncomplete()) return;
  await removeVolume(engine, volume.name);
}

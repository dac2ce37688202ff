import { rm } from 'node:fs/promises';

import type { Engine } from '../../engine.ts';
import { settlesWithin } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { measure } from '../../lib/measures.ts';
import { removeIfAnonymous, type RemoveVolumeNeeds } from '../../volumes/remove.ts';
import { emitContainer } from '../container-events.ts';
import { startOver } from '../runs/find-alive.ts';
import { containerFolder } from '../runs/places.ts';
import { isAlive, transition, exitCodeOf } from '../state.ts';
import type { Container, ContainerStore, MountPoint } from '../store.ts';
import { killContainer } from './kill.ts';

export type RemoveNeeds = RemoveVolumeNeeds &
  Pick<
    Engine,
    | 'background'
    | 'config'
    | 'containers'
    | 'clock'
    | 'deliveries'
    | 'execs'
    | 'health'
    | 'layers'
    | 'runs'
    | 'samplers'
  >;

/** A removal waits this long for the clean-up of the last run, above all for its mounted volumes. */
const CLEANUP_TIMEOUT_SECONDS = 10;

/**
 * Removes a container: the claim, its volumes, its record with the event `destroy`, and its files in the background.
 * Throws `conflict` for one that is running or waiting to restart, without `force`.
 */
export async function removeContainer(
  engine: RemoveNeeds,
  ref: string,
  { force = false, volumes = false }: { force?: boolean; volumes?: boolean } = {},
): Promise<void> {
  const measured = measure('container', 'delete');
  const { id } = engine.containers.find(ref);
  using _bridged = engine.runs.of(id).bridge(); // AutoRemove must not be faster
  if (force) await endIfAlive(engine, id);
  using _lock = await engine.locks.hold(id);
  // One commit: a refused removal changes nothing, and an interrupted one keeps the right volumes.
  const claimed = engine.containers.together(() => {
    const container = claim(engine.containers, id);
    keepVolumes(engine, container, { removesOwn: volumes });
    return container;
  });
  await finishRemoval(engine, claimed);
  measured();
}

/** Finishes a removal that this daemon or an earlier one has claimed. */
export async function finishRemoval(engine: RemoveNeeds, container: Container): Promise<void> {
  const { background, clock } = engine;
  const { id, mounts } = container;
  const about = { container: id };
  const run = engine.runs.of(id);
  const copied = run.endCopies();
  if (mounts.some(({ type }) => type === 'volume')) {
    await settlesWithin(Promise.all([run.cleaned(), copied]), CLEANUP_TIMEOUT_SECONDS, clock);
    // The next daemon removes volumes that cannot be removed now: they are still anonymous.
    await background.run('remove the volumes of a container', about, async () => {
      await removeAnonymousVolumes(engine, mounts);
    }).done;
  }
  deleteRecords(engine, container);
  // A removal can end the wait for the next run of a restart policy, too.
  run.tellRemoved(exitCodeOf(container.state));
  run.cancelClients();
  engine.samplers.forget(id);
  background.untilDone('remove the files of a container', about, async () => {
    await run.cleaned();
    await engine.deliveries.remove(container);
    await copied;
    engine.runs.forget(id);
    await rm(containerFolder(engine.config, id), { recursive: true, force: true });
    await engine.layers.remove(id); // the last step: until then the next daemon knows that it has to remove the rest
  });
  // Clients wait for the event on another connection, and must not get it before the answer.
  background.after(0, 'send the event of a removal', about, () => engine.events.wake());
}

function deleteRecords({ containers, db, events, execs, health }: RemoveNeeds, container: Container): void {
  db.transaction(() => {
    health.forget(container.id);
    execs.deleteOf(container.id);
    containers.delete(container.id);
    emitContainer(events, 'destroy', container, {}, { wake: false });
  });
}

/**
 * Volumes that stay become ordinary ones, which a user removes: all that the container did not get as its own, and those
 * too without `removesOwn`. Another container with the volume as its own decides with its removal.
 */
function keepVolumes(
  { containers, volumes }: RemoveNeeds,
  { id, mounts }: Container,
  { removesOwn }: { removesOwn: boolean },
): void {
  const others = containers.all().filter((other) => other.id !== id && other.state.status !== 'removing');
  for (const mount of mounts.filter(({ type, anonymous }) => type === 'volume' && !(anonymous && removesOwn))) {
    const isOthers = others.some((other) => other.mounts.some((own) => own.anonymous && own.name === mount.name));
    if (!isOthers) volumes.keep(mount.name ?? '');
  }
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
    if (state.status === 'removing') return current; // goes on with a failed removal
    return { ...current, state: transition(state, { status: 'removing', exitCode: exitCodeOf(state) }) };
  });
}

function refusal(id: string, kind: string, advice: string): EngineError {
  return new EngineError(
    'conflict',
    `You cannot remove a ${kind} container ${id}. ${advice} the container before attempting removal or force remove`,
  );
}

/** Removes the volumes that the container got without a name, also from another one, unless a container uses them. */
export async function removeAnonymousVolumes(engine: RemoveVolumeNeeds, mounts: readonly MountPoint[]): Promise<void> {
  for (const { type, name = '', anonymous } of mounts) {
    if (type === 'volume' && anonymous) await removeIfAnonymous(engine, name);
  }
}

/** At the daemon's start: removes anonymous volumes of interrupted creations and removals. */
export async function removeVolumesOfNobody(engine: RemoveVolumeNeeds): Promise<void> {
  for (const { name } of engine.volumes.all()) await removeIfAnonymous(engine, name);
}

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { emitContainer } from '../containers/container-events.ts';
import { enteredProcess } from '../containers/runs/entered-process.ts';
import { findAlive } from '../containers/runs/find-alive.ts';
import { runtimeCgroupOf, shimFolder } from '../containers/runs/places.ts';
import type { Container } from '../containers/store.ts';
import { Relay } from '../containers/streams/relay.ts';
import type { Engine } from '../engine.ts';
import { prepareMoves } from '../host/cgroups/cgroup-moves.ts';
import { mappedRoot } from '../host/users/id-map.ts';
import type { Task } from '../lib/concurrency/background.ts';
import { EngineError } from '../lib/errors.ts';
import { measure } from '../lib/measures.ts';
import { removeShimFolder } from '../runtime/shim/shim-folder.ts';
import { Shim } from '../runtime/shim/shim.ts';
import { StartFailed } from '../runtime/start-failure.ts';
import { commandLine } from './create.ts';
import { endOrphan } from './end-orphan.ts';
import type { Exec } from './store.ts';

export type ExecNeeds = Pick<
  Engine,
  | 'background'
  | 'clock'
  | 'config'
  | 'containers'
  | 'db'
  | 'events'
  | 'execs'
  | 'execShims'
  | 'layers'
  | 'networks'
  | 'runs'
  | 'runtimes'
>;

export type Claimed = Readonly<{ exec: Exec; container: Container }>;

/** The exit code of a start that failed before its command. */
const NOT_STARTED_CODE = 126;

/**
 * Makes all checks before the connection is taken over, and claims the exec: it can be started once. `size` replaces that
 * of the creation.
 */
export function claimExec(engine: ExecNeeds, ref: string, size?: Exec['size']): Claimed {
  prepareMoves();
  const { id, containerId } = engine.execs.find(ref);
  const { container } = findAlive(engine, containerId);
  if (container.state.status === 'paused') {
    throw new EngineError('conflict', `Container ${container.id} is paused, unpause the container before exec`);
  }
  const exec = engine.db.transaction(() => {
    const claimed = engine.execs.change(id, (current) =>
      starting(current.tty && size !== undefined ? { ...current, size } : current),
    );
    emitContainer(engine.events, `exec_start: ${commandLine(claimed)}`, container, { execID: id });
    return claimed;
  });
  return { exec, container };
}

function starting(exec: Exec): Exec {
  const { status } = exec.state;
  if (status === 'running' || status === 'starting') {
    throw new EngineError('conflict', `Error: Exec command ${exec.id} is already running`);
  }
  if (status === 'ended') throw new EngineError('conflict', `Error: Exec command ${exec.id} has already run`);
  return { ...exec, state: { status: 'starting' } };
}

/**
 * Runs a claimed exec; `connect` gets the stream before the process starts. Resolves when it runs, with a promise of
 * the moment when its exit code is stored. Throws `invalid` with the reason when it cannot be started.
 */
export async function runExec(
  engine: ExecNeeds,
  { exec, container }: Claimed,
  connect?: (relay: Relay) => void,
): Promise<{ recorded: Promise<void> }> {
  const measured = measure('container', 'exec');
  await using undo = new AsyncDisposableStack();
  try {
    refuseRelativeFolder(exec);
    const directory = shimFolder(engine.config, exec.id);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    undo.defer(async () => await removeFolder(engine, exec.id, directory).done);
    const { pid: ownerPid } = findAlive(engine, container.id).shim;
    const described = await enteredProcess(engine, container, ownerPid, exec);
    writeFileSync(join(directory, 'process.json'), JSON.stringify(described));
    const shim = await Shim.spawn({
      id: exec.id,
      directory,
      runtime: engine.runtimes.get(container.hostConfig.Runtime),
      mode: { kind: 'exec', container: container.id, oomScoreAdj: container.hostConfig.OomScoreAdj },
      cgroupBySystemd: runtimeCgroupOf(container).bySystemd,
      map: container.idMap && { root: mappedRoot(container.idMap) },
      tty: exec.tty,
      // Without a client, stdin could never be ended.
      openStdin: exec.openStdin && connect !== undefined,
      stdinOnce: true,
    });
    undo.defer(async () => await endShim(engine, exec, shim));
    engine.execShims.set(exec.id, shim);
    if (connect !== undefined) connect(await openStreams(shim, exec));
    const { size } = engine.execs.find(exec.id);
    if (size !== undefined) await shim.resize(size.width, size.height);
    const { pid } = await shim.start();
    engine.execs.change(exec.id, (current) => ({ ...current, state: { status: 'running', pid } }));
    undo.move();
    measured();
    return followExec(engine, exec.id, shim);
  } catch (error) {
    engine.execShims.delete(exec.id);
    const exitCode = error instanceof StartFailed ? error.exitCode : NOT_STARTED_CODE;
    engine.background.untilDone('record an exec that did not start', { exec: exec.id }, () =>
      end(engine, exec.id, exitCode),
    );
    throw error instanceof StartFailed ? new EngineError('invalid', error.message, { cause: error }) : error;
  }
}

/** runc refuses it, where crun would look for the folder below `/`. */
function refuseRelativeFolder({ workingDir }: Exec): void {
  if (workingDir === '' || workingDir.startsWith('/')) return;
  throw new StartFailed('OCI runtime exec failed: exec failed: Cwd must be an absolute path', 128);
}

async function openStreams(shim: Shim, { openStdin, openStdout, openStderr, tty }: Exec): Promise<Relay> {
  const stdout = openStdout || (tty && openStderr);
  return await Relay.open(shim, { stdin: openStdin, stdout, stderr: openStderr, logs: false, stream: true });
}

/** Watches a running exec. `recorded` resolves when its exit code is stored; it never rejects. */
export function followExec(engine: ExecNeeds, id: string, shim: Shim): { recorded: Promise<void> } {
  engine.execShims.set(id, shim);
  const recorded = shim.exited.then(
    async ({ exitCode }) => await recordEnd(engine, id, shim, exitCode),
    async () => await recordEnd(engine, id, shim, await endOrphan(engine, id)),
  );
  return { recorded };
}

async function recordEnd(engine: ExecNeeds, id: string, shim: Shim, exitCode: number): Promise<void> {
  const { background } = engine;
  const about = { exec: id };
  engine.execShims.delete(id);
  await background.untilDone('record the end of an exec', about, () => end(engine, id, exitCode, { ran: true })).done;
  shim.release();
  // In the background: the answer does not wait for it.
  background.run('clean up after an exec', about, async () => {
    await shim.gone;
    await removeFolder(engine, id, shim.directory).done;
  });
}

function removeFolder({ background }: ExecNeeds, id: string, directory: string): Task {
  return background.untilDone('remove the folder of a shim', { exec: id }, async () => {
    await removeShimFolder(directory);
  });
}

/** Also ends a process that runs already, because its end would never be recorded. */
async function endShim(engine: ExecNeeds, { id }: Exec, shim: Shim): Promise<void> {
  await shim.end();
  if (shim.wasLost) await endOrphan(engine, id);
}

/** The container may have been removed with its execs meanwhile. */
function end(
  { containers, clock, db, events, execs }: ExecNeeds,
  id: string,
  exitCode: number,
  { ran = false } = {},
): void {
  const exec = execs.get(id);
  if (exec === undefined) return;
  const container = containers.get(exec.containerId);
  db.transaction(() => {
    execs.change(id, (current) => ({ ...current, state: { status: 'ended', exitCode, endedAt: clock.now() } }));
    if (!ran || container === undefined) return;
    emitContainer(events, 'exec_die', container, { execID: id, exitCode: String(exitCode) });
  });
}

import { mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Config } from '../config/config.ts';
import { findAlive } from '../containers/alive.ts';
import { emitContainer } from '../containers/container-events.ts';
import { shimFolder } from '../containers/places.ts';
import { Relay } from '../containers/relay.ts';
import type { Shims } from '../containers/shims.ts';
import type { Container, ContainerStore } from '../containers/store.ts';
import type { Events } from '../events/events.ts';
import { prepareMoves } from '../host/cgroup-moves.ts';
import type { Layers } from '../layers/layers.ts';
import type { Clock } from '../lib/clock.ts';
import { EngineError } from '../lib/errors.ts';
import type { Networks } from '../networks/networks.ts';
import type { Runtimes } from '../runtime/runtimes.ts';
import { Shim, ShimLost } from '../runtime/shim.ts';
import { StartFailed } from '../runtime/start-failure.ts';
import { commandLine } from './create.ts';
import { execProcess } from './process.ts';
import type { Exec, ExecStore } from './store.ts';

export type ExecNeeds = {
  clock: Clock;
  config: Config;
  containers: ContainerStore;
  events: Events;
  execs: ExecStore;
  execShims: Map<string, Shim>;
  layers: Layers;
  log: { error(details: object, message: string): void };
  networks: Networks;
  runtimes: Runtimes;
  shims: Shims;
};

export type Claimed = Readonly<{ exec: Exec; container: Container }>;

/** dockerd 20.10 gives this to whatever could not be started, a missing command included. */
const NOT_STARTED_CODE = 126;
const LOST_CODE = 255;

/** What can be refused, before the connection is taken over; from here on the exec is started once. */
export function claimExec(engine: ExecNeeds, ref: string): Claimed {
  prepareMoves();
  const { id, containerId } = engine.execs.find(ref);
  const { container } = findAlive(engine, containerId);
  if (container.state.status === 'paused') {
    throw new EngineError('conflict', `Container ${container.id} is paused, unpause the container before exec`);
  }
  const exec = engine.execs.change(id, (current) => {
    const { status } = current.state;
    if (status === 'running' || status === 'starting') {
      throw new EngineError('conflict', `Error: Exec command ${id} is already running`);
    }
    if (status === 'ended') throw new EngineError('conflict', `Error: Exec command ${id} has already run`);
    return { ...current, state: { status: 'starting' } };
  });
  emitContainer(engine.events, `exec_start: ${commandLine(exec)}`, container, { execID: exec.id });
  return { exec, container };
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
  await using undo = new AsyncDisposableStack();
  try {
    const directory = shimFolder(engine.config, exec.id);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    undo.defer(async () => await rm(directory, { recursive: true, force: true }));
    const { pid: ownerPid } = findAlive(engine, container.id).shim;
    const described = await execProcess(engine, exec, container, ownerPid);
    writeFileSync(join(directory, 'process.json'), JSON.stringify(described));
    const shim = await Shim.spawn({
      id: exec.id,
      directory,
      runtime: engine.runtimes.get(container.hostConfig.Runtime),
      mode: { kind: 'exec', container: container.id, oomScoreAdj: container.hostConfig.OomScoreAdj },
      tty: exec.tty,
      // Nobody could ever end the stdin of a detached one.
      openStdin: exec.openStdin && connect !== undefined,
      stdinOnce: true,
      log: { driver: 'none' },
    });
    undo.defer(async () => await shim.abandon());
    engine.execShims.set(exec.id, shim);
    if (connect !== undefined) connect(await openStreams(shim, exec));
    const { size } = engine.execs.find(exec.id);
    if (size !== undefined) await shim.resize(size.width, size.height);
    const { pid } = await shim.start();
    engine.execs.change(exec.id, (current) => ({ ...current, state: { status: 'running', pid } }));
    undo.move();
    return { recorded: followExec(engine, exec.id, shim) };
  } catch (error) {
    engine.execShims.delete(exec.id);
    end(engine, exec.id, NOT_STARTED_CODE);
    throw error instanceof StartFailed ? new EngineError('invalid', error.message, { cause: error }) : error;
  }
}

async function openStreams(shim: Shim, { openStdin, openStdout, openStderr, tty }: Exec): Promise<Relay> {
  const stdout = openStdout || (tty && openStderr);
  return await Relay.open(shim, { stdin: openStdin, stdout, stderr: openStderr, logs: false, stream: true });
}

/** Watches a running exec until its exit code is stored. */
export async function followExec(engine: ExecNeeds, id: string, shim: Shim): Promise<void> {
  engine.execShims.set(id, shim);
  const exitCode = await exitCodeOf(shim);
  engine.execShims.delete(id);
  end(engine, id, exitCode);
  const { containerId } = engine.execs.get(id) ?? {};
  const container = engine.containers.get(containerId ?? '');
  if (container !== undefined) {
    emitContainer(engine.events, 'exec_die', container, { execID: id, exitCode: String(exitCode) });
  }
  shim.release();
  // Nobody waits for it: the answer goes out before.
  shim.gone
    .then(async () => await rm(shim.directory, { recursive: true, force: true }))
    .catch((error: unknown) => engine.log.error({ err: error, exec: id }, 'the folder of an exec is left'));
}

async function exitCodeOf(shim: Shim): Promise<number> {
  try {
    return (await shim.exited).exitCode;
  } catch (error) {
    if (!(error instanceof ShimLost)) throw error;
    return LOST_CODE;
  }
}

/** The container may have been removed with its execs meanwhile. */
function end({ execs, clock }: ExecNeeds, id: string, exitCode: number): void {
  if (execs.get(id) === undefined) return;
  execs.change(id, (current) => ({ ...current, state: { status: 'ended', exitCode, endedAt: clock.now() } }));
}

import { mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';

import type { Config } from '../config/config.ts';
import { findAlive } from '../containers/alive.ts';
import { emitContainer } from '../containers/container-events.ts';
import { resolveUser } from '../containers/container-user.ts';
import { environmentOf, grantedCapabilities, processFields } from '../containers/oci-spec.ts';
import { shimFolder } from '../containers/places.ts';
import type { Shims } from '../containers/shims.ts';
import type { Container, ContainerStore } from '../containers/store.ts';
import type { Events } from '../events/events.ts';
import type { Layers } from '../layers/layers.ts';
import { EngineError } from '../lib/errors.ts';
import type { Runtimes } from '../runtime/runtimes.ts';
import { Shim, ShimLost } from '../runtime/shim.ts';
import { StartFailed } from '../runtime/start-failure.ts';
import type { Exec, ExecStore } from './store.ts';

export type ExecNeeds = {
  config: Config;
  containers: ContainerStore;
  events: Events;
  execs: ExecStore;
  execShims: Map<string, Shim>;
  layers: Layers;
  runtimes: Runtimes;
  shims: Shims;
};

/** What can be refused, before the connection is taken over; from here on the exec is started once. */
export function claimExec(engine: ExecNeeds, ref: string): { exec: Exec; container: Container } {
  const { id, containerId } = engine.execs.find(ref);
  const { container } = findAlive(engine, containerId);
  if (container.state.status === 'paused') {
    throw new EngineError('conflict', `Container ${container.id} is paused, unpause the container before exec`);
  }
  const exec = engine.execs.change(id, (current) => {
    if (current.state.status === 'running' || current.state.status === 'starting') {
      throw new EngineError('conflict', `Error: Exec command ${id} is already running`);
    }
    if (current.state.status === 'ended') {
      throw new EngineError('conflict', `Error: Exec command ${id} has already run`);
    }
    return { ...current, state: { status: 'starting' } };
  });
  return { exec, container };
}

/**
 * Runs a claimed exec. `connect` gets the stream before the process starts. Resolves when it runs; the returned
 * promise inside resolves when its exit code is stored. Throws `failed` with the runtime's words.
 */
export async function runExec(
  engine: ExecNeeds,
  { exec, container }: { exec: Exec; container: Container },
  connect?: (stream: Socket) => void,
): Promise<{ recorded: Promise<void> }> {
  await using undo = new AsyncDisposableStack();
  const directory = shimFolder(engine.config, exec.id);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  undo.defer(async () => await rm(directory, { recursive: true, force: true }));
  try {
    writeFileSync(join(directory, 'process.json'), JSON.stringify(processOf(engine, exec, container)));
    const shim = await Shim.spawn({
      id: exec.id,
      directory,
      runtime: engine.runtimes.get(container.hostConfig.Runtime),
      mode: { kind: 'exec', container: container.id },
      tty: exec.tty,
      openStdin: exec.openStdin,
      stdinOnce: true,
      log: { driver: 'none' },
    });
    undo.defer(async () => await shim.abandon());
    if (connect !== undefined) {
      const { openStdin: stdin, openStdout: stdout, openStderr: stderr } = exec;
      connect(await shim.attach({ stdin, stdout: stdout || exec.tty, stderr, logs: false, stream: true }));
    }
    const { pid } = await shim.start();
    engine.execs.change(exec.id, (current) => ({ ...current, state: { status: 'running', pid } }));
    emitContainer(engine.events, `exec_start: ${exec.command.join(' ')}`, container, { execID: exec.id });
    undo.move();
    return { recorded: followExec(engine, exec.id, shim) };
  } catch (error) {
    endExec(engine, exec.id, error instanceof StartFailed ? error.exitCode : 126);
    throw error instanceof StartFailed ? new EngineError('failed', error.message, { cause: error }) : error;
  }
}

/** Watches a running exec until its exit code is stored. */
export async function followExec(engine: ExecNeeds, id: string, shim: Shim): Promise<void> {
  engine.execShims.set(id, shim);
  let exitCode = 255;
  try {
    ({ exitCode } = await shim.exited);
  } catch (error) {
    if (!(error instanceof ShimLost)) throw error;
  }
  engine.execShims.delete(id);
  endExec(engine, id, exitCode);
  shim.release();
  await rm(shim.directory, { recursive: true, force: true });
}

function endExec(engine: ExecNeeds, id: string, exitCode: number): void {
  const known = engine.execs.get(id);
  if (known === undefined) return;
  engine.execs.change(id, (current) => ({ ...current, state: { status: 'ended', exitCode } }));
  const container = engine.containers.get(known.containerId);
  if (container !== undefined)
    emitContainer(engine.events, 'exec_die', container, { execID: id, exitCode: String(exitCode) });
}

function processOf(engine: ExecNeeds, exec: Exec, container: Container): object {
  const capabilities = grantedCapabilities(container.hostConfig, exec.privileged || container.hostConfig.Privileged);
  const overlay = engine.layers.overlay(container.id);
  const user = resolveUser(exec.user || container.config.User, container.hostConfig.GroupAdd ?? [], overlay);
  return {
    ...processFields(container, user, capabilities),
    terminal: exec.tty,
    args: exec.command,
    env: [...environmentOf(container, exec.tty), ...exec.env],
    cwd: exec.workingDir || container.config.WorkingDir || '/',
  };
}

import { emitContainer } from '../containers/container-events.ts';
import { findAlive } from '../containers/runs/find-alive.ts';
import { parseDetachKeys } from '../containers/streams/detach-keys.ts';
import type { Engine } from '../engine.ts';
import { prepareMoves } from '../host/cgroups/cgroup-moves.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { checkUser } from '../oci/user.ts';
import type { ExecCreateBody } from './schema.ts';
import type { Exec } from './store.ts';

type Needs = Pick<Engine, 'clock' | 'containers' | 'db' | 'events' | 'execs' | 'runs'>;

/** Prepares a process for a running container. Throws `notFound`, `invalid`, `conflict`. Specification, endpoint 25. */
export function createExec(engine: Needs, ref: string, body: ExecCreateBody): Exec {
  parseDetachKeys(body.DetachKeys);
  const command = typeof body.Cmd === 'string' ? [body.Cmd] : (body.Cmd ?? []);
  if (command.length === 0 || command[0] === '') throw new EngineError('invalid', 'No exec command specified');
  if (engine.containers.find(ref).state.status === 'restarting') {
    throw new EngineError('conflict', `Container ${ref} is restarting, wait until the container is running`);
  }
  const { container } = findAlive(engine, ref);
  if (container.state.status === 'paused') {
    throw new EngineError('conflict', `Container ${ref} is paused, unpause the container before exec`);
  }
  const user = body.User || container.config.User;
  checkUser({ user, groupAdd: [] });
  prepareMoves(); // the start usually follows at once
  const exec: Exec = {
    id: newId(),
    containerId: container.id,
    command,
    user,
    tty: body.Tty ?? false,
    size: body.Tty === true ? terminalSize(body.ConsoleSize) : undefined,
    privileged: body.Privileged ?? false,
    openStdin: body.AttachStdin ?? false,
    openStdout: body.AttachStdout ?? false,
    openStderr: body.AttachStderr ?? false,
    detachKeys: body.DetachKeys ?? '',
    env: body.Env ?? [],
    workingDir: body.WorkingDir ?? '',
    state: { status: 'created' },
  };
  engine.db.transaction(() => {
    engine.execs.insert(exec, engine.clock.now());
    emitContainer(engine.events, `exec_create: ${commandLine(exec)}`, container, { execID: exec.id });
  });
  return exec;
}

/** A terminal's size of height and width; undefined where one is missing. */
export function terminalSize([height = 0, width = 0]: readonly number[] = []): Exec['size'] {
  return height > 0 && width > 0 ? { height, width } : undefined;
}

/**
 * The command as events show it, with a trailing blank if there are no arguments, because filters compare with that.
 */
export function commandLine({ command }: Exec): string {
  return `${command[0]} ${command.slice(1).join(' ')}`;
}

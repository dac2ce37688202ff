import { emitContainer } from '../containers/container-events.ts';
import { findAlive } from '../containers/runs/find-alive.ts';
import type { Container } from '../containers/store.ts';
import { parseDetachKeys } from '../containers/streams/detach-keys.ts';
import type { Engine } from '../engine.ts';
import { prepareMoves } from '../host/cgroups/cgroup-moves.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { rootSeenBy } from '../oci/root-files.ts';
import { checkUser, resolveUser } from '../oci/user.ts';
import type { ExecCreateBody } from './schema.ts';
import type { Exec } from './store.ts';

type Needs = Pick<Engine, 'clock' | 'layers' | 'containers' | 'db' | 'events' | 'execs' | 'runs'>;

/**
 * Prepares a process for a running container. Throws `notFound`, `invalid`, `conflict`. `refusesUnknownUsers`: for a client of
 * dockerd 28, others hear of them from the start. Specification, endpoint 25.
 */
export async function createExec(
  engine: Needs,
  ref: string,
  body: ExecCreateBody,
  { refusesUnknownUsers }: Readonly<{ refusesUnknownUsers: boolean }>,
): Promise<Exec> {
  parseDetachKeys(body.DetachKeys);
  const command = typeof body.Cmd === 'string' ? [body.Cmd] : (body.Cmd ?? []);
  if (command.length === 0) throw new EngineError('invalid', 'No exec command specified');
  findRunning(engine, ref);
  if (refusesUnknownUsers) await refuseUnknownUser(engine, ref, body.User ?? '');
  const container = findRunning(engine, ref); // it may have ended meanwhile
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

function findRunning(engine: Needs, ref: string): Container {
  if (engine.containers.find(ref).state.status === 'restarting') {
    throw new EngineError('conflict', `Container ${ref} is restarting, wait until the container is running`);
  }
  const { container } = findAlive(engine, ref);
  if (container.state.status === 'paused') {
    throw new EngineError('conflict', `Container ${ref} is paused, unpause the container before exec`);
  }
  return container;
}

/** Refuses a name that the container's files do not have. Numbers need no files. */
async function refuseUnknownUser(engine: Needs, ref: string, user: string): Promise<void> {
  if (/^\d*(?::\d*)?$/.test(user)) return;
  const { container, shim } = findAlive(engine, ref);
  const root = rootSeenBy(shim.pid, engine.layers.overlay(container.id));
  await resolveUser({ user, groupAdd: [] }, root, { needsHome: false });
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

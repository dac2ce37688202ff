import { ApiError, type Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';
import { pullImage } from '@gantry/client/images.ts';
import type { Command } from 'commander';

import { createBodyOf, type RunFlags } from './container-options.ts';
import { describe, EXIT, Exit } from './exit-codes.ts';
import { collect } from './flags.ts';
import type { Context } from './main.ts';
import { runSession } from './session.ts';
import { forwardSignals } from './signals.ts';

/** `gantry run`: the specification's client run sequence. */
export function addRunCommand(program: Command, context: Context): void {
  program
    .command('run <image> [command...]')
    .description('create a container and run a command in it')
    .passThroughOptions()
    .option('-d, --detach', 'print the id and leave it running')
    .option('-i, --interactive', 'keep stdin open')
    .option('-t, --tty', 'give it a terminal')
    .option('-p, --publish <port>', '[[ip:]host-port:]container-port[/protocol]', collect, [])
    .option('-v, --volume <bind>', 'source:destination[:ro]', collect, [])
    .option('-e, --env <variable>', 'NAME=value, or NAME for your own value', collect, [])
    .option('-l, --label <label>', 'name=value', collect, [])
    .option('--name <name>', 'the container’s name')
    .option('--rm', 'remove it when it ends')
    .option('--network <mode>', 'bridge, none, host or container:<name>')
    .option('-m, --memory <bytes>', 'limit, such as 64m')
    .option('--cpus <number>', 'limit, such as 1.5')
    .option('-u, --user <user>', 'user[:group]')
    .option('-w, --workdir <path>', 'working directory')
    .option('--entrypoint <program>', 'instead of the image’s')
    .option('-h, --hostname <name>', 'its host name')
    .option('--read-only', 'read-only root')
    .option('--privileged', 'all capabilities and devices')
    .option('--restart <policy>', 'no, always, unless-stopped or on-failure[:count]')
    .option('--detach-keys <keys>', 'default ctrl-p,ctrl-q')
    .helpOption('--help', 'show this')
    .action(async (image: string, command: string[], flags: RunFlags) => {
      process.exitCode = await run(context.connection, flags, image, command);
    });
}

async function run(engine: Connection, flags: RunFlags, image: string, command: string[]): Promise<number> {
  if (flags.detach === true && flags.rm === true) {
    throw new Exit(
      EXIT.usage,
      'conflicting options: --rm and --detach (the engine does not remove containers by itself)',
    );
  }
  if (flags.tty === true && flags.interactive === true && flags.detach !== true && !process.stdin.isTTY) {
    throw new Exit(EXIT.failed, 'the input device is not a TTY');
  }
  const id = await asEngineFailure(create(engine, flags, image, command));
  try {
    return flags.detach === true ? await startDetached(engine, id) : await startAttached(engine, id, flags);
  } finally {
    if (flags.rm === true) await removeAfterEnd(engine, id);
  }
}

async function create(engine: Connection, flags: RunFlags, image: string, command: string[]): Promise<string> {
  const body = createBodyOf(flags, image, command);
  try {
    return await createAndWarn(engine, body, flags.name);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    console.error(`Unable to find image '${image}' locally`);
    await pullImage(engine, image, (line) => console.error(line));
    return await createAndWarn(engine, body, flags.name);
  }
}

async function createAndWarn(engine: Connection, body: containers.CreateBody, name?: string): Promise<string> {
  const { Id, Warnings } = await containers.create(engine, body, name);
  for (const warning of Warnings ?? []) console.error(`WARNING: ${warning}`);
  return Id;
}

async function startDetached(engine: Connection, id: string): Promise<number> {
  await startOrExplain(engine, id);
  console.log(id);
  return 0;
}

async function startAttached(engine: Connection, id: string, flags: RunFlags): Promise<number> {
  const stdin = flags.interactive ?? false;
  const tty = flags.tty ?? false;
  // Attached before the start, so that the first byte is not missed.
  const { socket } = await asEngineFailure(
    containers.attach(engine, id, {
      stream: true,
      stdin,
      stdout: true,
      stderr: true,
      ...(flags.detachKeys !== undefined && { detachKeys: flags.detachKeys }),
    }),
  );
  using _signals = tty ? undefined : forwardSignals((signal) => containers.kill(engine, id, signal));
  try {
    await startOrExplain(engine, id);
  } catch (error) {
    socket.destroy();
    throw error;
  }
  await runSession(socket, { tty, stdin, resize: (size) => containers.resize(engine, id, size) });
  return await exitCodeOf(engine, id);
}

/** The container's code; 0 after the detach keys, which leave it running. */
export async function exitCodeOf(engine: Connection, id: string): Promise<number> {
  const { State } = await containers.inspect(engine, id);
  return State.Running ? 0 : State.ExitCode;
}

async function startOrExplain(engine: Connection, id: string): Promise<void> {
  try {
    await containers.start(engine, id);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { State } = await containers.inspect(engine, id);
    const code =
      State.ExitCode === EXIT.notFound || State.ExitCode === EXIT.cannotExecute ? State.ExitCode : EXIT.engineFailed;
    throw new Exit(code, describe(error, ''));
  }
}

async function removeAfterEnd(engine: Connection, id: string): Promise<void> {
  const { State } = await containers.inspect(engine, id);
  if (State.Running) return; // detached from: it goes on
  await containers.remove(engine, id, { v: true });
}

async function asEngineFailure<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ApiError) throw new Exit(EXIT.engineFailed, describe(error, ''));
    throw error;
  }
}

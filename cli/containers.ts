import { ApiError, type Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';
import { inspectImage } from '@gantry/client/images.ts';
import type { Command } from 'commander';

import { describe, EXIT, Exit } from './exit-codes.ts';
import { collect, filtersOf } from './flags.ts';
import { ago } from './human.ts';
import type { Context } from './main.ts';
import { copyFrames } from './output.ts';
import { exitCodeOf } from './run.ts';
import { runSession } from './session.ts';
import { forwardSignals } from './signals.ts';
import { tableText } from './table.ts';

type PsFlags = { all?: boolean; quiet?: boolean; last?: string; filter: string[]; trunc: boolean; size?: boolean };
type LogFlags = { follow?: boolean; timestamps?: boolean; tail?: string; since?: string; details?: boolean };

/** `ps`, `logs`, `attach`, `stop`, `kill`, `rm`, `inspect`. */
export function addContainerCommands(program: Command, context: Context): void {
  program
    .command('ps')
    .description('list containers')
    .option('-a, --all', 'also those that do not run')
    .option('-q, --quiet', 'ids alone')
    .option('-n, --last <number>', 'the last created')
    .option('-s, --size', 'with sizes')
    .option('-f, --filter <filter>', 'key=value', collect, [])
    .option('--no-trunc', 'whole ids and commands')
    .action(async (flags: PsFlags) => await ps(context.connection, flags));

  program
    .command('logs <container>')
    .description('show what a container wrote')
    .option('-f, --follow', 'go on while it runs')
    .option('-t, --timestamps', 'with times')
    .option('-n, --tail <lines>', 'only the last lines', 'all')
    .option('--since <time>', 'UNIX seconds or RFC 3339')
    .option('--details', 'with extra attributes')
    .action(async (ref: string, flags: LogFlags) => await logs(context.connection, ref, flags));

  program
    .command('attach <container>')
    .description('connect this terminal with a running container')
    .option('--no-stdin', 'output alone')
    .option('--detach-keys <keys>', 'default ctrl-p,ctrl-q')
    .option('--no-sig-proxy', 'keep signals here')
    .action(async (ref: string, flags: { stdin: boolean; detachKeys?: string; sigProxy: boolean }) => {
      process.exitCode = await attach(context.connection, ref, flags);
    });

  program
    .command('stop <containers...>')
    .description('stop containers')
    .option('-t, --time <seconds>', 'before they are killed')
    .action(async (refs: string[], { time }: { time?: string }) => {
      await each(refs, async (ref) => {
        await containers.stop(context.connection, ref, time);
        console.log(ref);
      });
    });

  program
    .command('kill <containers...>')
    .description('send a signal to containers')
    .option('-s, --signal <signal>', 'name or number', 'KILL')
    .action(async (refs: string[], { signal }: { signal: string }) => {
      await each(refs, async (ref) => {
        await containers.kill(context.connection, ref, signal);
        console.log(ref);
      });
    });

  program
    .command('rm <containers...>')
    .description('remove containers')
    .option('-f, --force', 'also running ones')
    .option('-v, --volumes', 'with their anonymous volumes')
    .action(async (refs: string[], flags: { force?: boolean; volumes?: boolean }) => {
      await each(refs, async (ref) => {
        await containers.remove(context.connection, ref, { force: flags.force, v: flags.volumes });
        console.log(ref);
      });
    });

  program
    .command('inspect <names...>')
    .description('everything about containers or images, as JSON')
    .option('-s, --size', 'with sizes')
    .action(async (refs: string[], { size }: { size?: boolean }) => {
      const found = [];
      for (const ref of refs) found.push(await inspectAny(context.connection, ref, size ?? false));
      console.log(JSON.stringify(found, undefined, 4));
    });
}

async function ps(engine: Connection, flags: PsFlags): Promise<void> {
  const listed = await containers.list(engine, {
    all: flags.all,
    limit: flags.last,
    size: flags.size,
    filters: filtersOf(flags.filter),
  });
  if (flags.quiet === true) {
    for (const { Id } of listed) console.log(flags.trunc ? Id.slice(0, 12) : Id);
    return;
  }
  const rows = listed.map((container) => [
    flags.trunc ? container.Id.slice(0, 12) : container.Id,
    container.Image,
    flags.trunc ? shortened(`"${container.Command}"`, 22) : `"${container.Command}"`,
    ago(container.Created),
    container.Status,
    container.Ports.map(portText).join(', '),
    container.Names.map((name) => name.replace(/^\//, '')).join(','),
  ]);
  console.log(tableText(['CONTAINER ID', 'IMAGE', 'COMMAND', 'CREATED', 'STATUS', 'PORTS', 'NAMES'], rows));
}

async function logs(engine: Connection, ref: string, flags: LogFlags): Promise<void> {
  const { Config } = await containers.inspect(engine, ref);
  const stream = await containers.logs(engine, ref, { stdout: true, stderr: true, ...flags });
  await copyFrames(stream, Config.Tty);
}

async function attach(
  engine: Connection,
  ref: string,
  flags: { stdin: boolean; detachKeys?: string; sigProxy: boolean },
): Promise<number> {
  const { Id, Config, State } = await containers.inspect(engine, ref);
  if (!State.Running) throw new Exit(EXIT.failed, 'You cannot attach to a stopped container, start it first');
  if (State.Paused) throw new Exit(EXIT.failed, 'You cannot attach to a paused container, unpause it first');
  const stdin = flags.stdin && Config.OpenStdin;
  const { socket } = await containers.attach(engine, Id, {
    stream: true,
    stdin,
    stdout: true,
    stderr: true,
    ...(flags.detachKeys !== undefined && { detachKeys: flags.detachKeys }),
  });
  using _signals =
    Config.Tty || !flags.sigProxy ? undefined : forwardSignals((signal) => containers.kill(engine, Id, signal));
  await runSession(socket, { tty: Config.Tty, stdin, resize: (size) => containers.resize(engine, Id, size) });
  return await exitCodeOf(engine, Id);
}

async function inspectAny(engine: Connection, ref: string, size: boolean): Promise<unknown> {
  try {
    return await containers.inspect(engine, ref, size);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  try {
    return await inspectImage(engine, ref);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) throw new Exit(EXIT.failed, `No such object: ${ref}`);
    throw error;
  }
}

/** Does it for every name, says what failed, and fails at the end when any did. */
export async function each(refs: readonly string[], work: (ref: string) => Promise<void>): Promise<void> {
  let failed = false;
  for (const ref of refs) {
    try {
      await work(ref);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      console.error(describe(error, ''));
      failed = true;
    }
  }
  if (failed) throw new Exit(EXIT.failed);
}

function portText(port: { IP?: string; PrivatePort: number; PublicPort?: number; Type: string }): string {
  const inside = `${port.PrivatePort}/${port.Type}`;
  return port.PublicPort === undefined ? inside : `${port.IP ?? '0.0.0.0'}:${port.PublicPort}->${inside}`;
}

function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 2)}…"` : text;
}

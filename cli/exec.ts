import * as execs from '@gantry/client/exec.ts';
import type { Command } from 'commander';

import { EXIT, Exit } from './exit-codes.ts';
import type { Context } from './main.ts';
import { runSession } from './session.ts';

type ExecFlags = {
  detach?: boolean;
  interactive?: boolean;
  tty?: boolean;
  user?: string;
  privileged?: boolean;
  detachKeys?: string;
};

/** `gantry exec`: a command in a running container, with its exit code. */
export function addExecCommand(program: Command, context: Context): void {
  program
    .command('exec <container> <command...>')
    .description('run a command in a running container')
    .passThroughOptions()
    .option('-d, --detach', 'do not wait for it')
    .option('-i, --interactive', 'keep stdin open')
    .option('-t, --tty', 'give it a terminal')
    .option('-u, --user <user>', 'user[:group]')
    .option('--privileged', 'all capabilities')
    .option('--detach-keys <keys>', 'default ctrl-p,ctrl-q')
    .action(async (ref: string, command: string[], flags: ExecFlags) => {
      process.exitCode = await exec(context, ref, command, flags);
    });
}

async function exec({ connection }: Context, ref: string, command: string[], flags: ExecFlags): Promise<number> {
  const stdin = flags.interactive ?? false;
  const tty = flags.tty ?? false;
  if (stdin && tty && flags.detach !== true && !process.stdin.isTTY) {
    throw new Exit(EXIT.failed, 'the input device is not a TTY');
  }
  const id = await execs.create(connection, ref, {
    Cmd: command,
    AttachStdin: stdin,
    AttachStdout: flags.detach !== true,
    AttachStderr: flags.detach !== true,
    Tty: tty,
    User: flags.user ?? '',
    Privileged: flags.privileged ?? false,
    ...(flags.detachKeys !== undefined && { DetachKeys: flags.detachKeys }),
  });
  if (flags.detach === true) {
    await execs.startDetached(connection, id, tty);
    return 0;
  }
  const { socket } = await execs.start(connection, id, tty);
  await runSession(socket, { tty, stdin, resize: (size) => execs.resize(connection, id, size) });
  const { Running, ExitCode } = await execs.inspect(connection, id);
  return Running ? 0 : (ExitCode ?? EXIT.failed);
}

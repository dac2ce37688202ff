import * as execs from '@gantry/client/exec.ts';

import { command, MANY } from '../command-line/command.ts';
import { linesOfFiles, variables } from '../create/variables.ts';
import { EXIT, Exit } from '../exit-codes.ts';
import { runSession } from '../session/session.ts';

const FLAGS = {
  detach: { kind: 'boolean', short: 'd', help: 'Do not wait for it' },
  'detach-keys': { kind: 'text', value: 'KEYS', help: 'Keys that leave it running (default ctrl-p,ctrl-q)' },
  env: { kind: 'list', short: 'e', value: 'NAME[=VALUE]', help: 'Set an environment variable; without a value: yours' },
  'env-file': { kind: 'list', value: 'FILE', help: 'Set environment variables from a file', offers: 'file' },
  interactive: { kind: 'boolean', short: 'i', help: 'Keep stdin open' },
  privileged: { kind: 'boolean', help: 'All capabilities' },
  tty: { kind: 'boolean', short: 't', help: 'Give it a terminal' },
  user: { kind: 'text', short: 'u', value: 'USER[:GROUP]', help: 'Names or numbers' },
  workdir: { kind: 'text', short: 'w', value: 'PATH', help: 'Working directory inside' },
} as const;

/** `gantry exec`: a command in a running container, with its exit code. */
export const exec = command({
  words: 'CONTAINER COMMAND [ARG...]',
  count: [2, MANY],
  flags: FLAGS,
  passesOn: true,
  offers: 'container',
  about: 'Ends with the code of the command; 126: it cannot be run.',
  examples: ['gantry exec -it web sh', 'gantry exec -e DEBUG=1 -w /srv web ./check'],
  run: async ({ connection }, [ref = '', ...words], flags) => {
    const { tty, interactive: stdin, detach } = flags;
    if (stdin && tty && !detach && !process.stdin.isTTY) throw new Exit(EXIT.failed, 'the input device is not a TTY');
    const environment = [...linesOfFiles(flags['env-file']), ...flags.env].map(variables);
    const id = await execs.create(connection, ref, {
      Cmd: words,
      AttachStdin: stdin && !detach,
      AttachStdout: !detach,
      AttachStderr: !detach,
      Tty: tty,
      Privileged: flags.privileged,
      ...(flags.user !== undefined && { User: flags.user }),
      ...(environment.length > 0 && { Env: environment }),
      ...(flags.workdir !== undefined && { WorkingDir: flags.workdir }),
      ...(flags['detach-keys'] !== undefined && { DetachKeys: flags['detach-keys'] }),
    });
    if (detach) {
      await execs.startDetached(connection, id, tty);
      return 0;
    }
    const { socket } = await execs.start(connection, id, tty);
    await runSession(socket, { tty, stdin, resize: (size) => execs.resize(connection, id, size) });
    const { Running, ExitCode } = await execs.inspect(connection, id);
    if (!Running) return ExitCode ?? EXIT.failed;
    console.error('Detached: the command goes on.');
    return 0;
  },
});

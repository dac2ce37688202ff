import { unlink } from 'node:fs/promises';

import * as containers from '@gantry/client/containers.ts';

import { command, MANY, type Context, type Given } from '../command-line/command.ts';
import { CREATE_FLAGS } from '../create/flags.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { exitCodeOf } from '../session/exit-code.ts';
import { runSession } from '../session/session.ts';
import { forwardSignals } from '../session/signals.ts';
import { removeInBackground } from './background-removal.ts';
import { attachedStreams, createContainer } from './create.ts';
import { asEngineFailure, startOrExplain } from './failure-codes.ts';

const RUN_FLAGS = {
  ...CREATE_FLAGS,
  detach: { kind: 'boolean', short: 'd', help: 'Run it in the background and print its id' },
  'detach-keys': { kind: 'text', value: 'KEYS', help: 'Keys that leave it running (default ctrl-p,ctrl-q)' },
  'sig-proxy': { kind: 'boolean', initial: 'true', help: 'Pass signals on to the container' },
} as const;
type RunFlags = Given<typeof RUN_FLAGS>;

/** `gantry run`: the specification's client run sequence. */
export const run = command({
  words: 'IMAGE [COMMAND] [ARG...]',
  count: [1, MANY],
  flags: RUN_FLAGS,
  passesOn: true,
  offers: 'image',
  about:
    'Ends with the code of the container; 125: it cannot be created, 126: its program cannot be run, 127: its program is missing.',
  examples: [
    'gantry run --rm -it busybox sh',
    'gantry run -d --name web -p 8080:80 -v pages:/www --restart unless-stopped busybox httpd -f -p 80 -h /www',
    'echo hello | gantry run --rm -i busybox wc -c',
  ],
  run: async (context, [image = '', ...words], flags) => {
    check(flags);
    const attached = flags.detach ? new Set<never>() : attachedStreams(flags);
    const id = await asEngineFailure(createContainer(context.connection, { image, command: words, attached }, flags));
    if (flags.detach) return await startDetached(context, id, flags);
    try {
      return await startAttached(context, id, flags);
    } finally {
      if (flags.rm) await removeAfterEnd(context, id);
    }
  },
});

function check(flags: RunFlags): void {
  if (flags.rm && flags.restart !== undefined && flags.restart !== 'no') {
    throw new UsageError('conflicting options: --restart and --rm');
  }
  if (flags.detach && flags.attach.length > 0) throw new UsageError('conflicting options: --attach and --detach');
  if (flags.tty && flags.interactive && !flags.detach && !process.stdin.isTTY) {
    throw new Exit(EXIT.failed, 'the input device is not a TTY');
  }
}

async function startDetached(context: Context, id: string, flags: RunFlags): Promise<number> {
  try {
    await startOrExplain(context.connection, id, flags['detach-keys']);
  } catch (error) {
    if (flags.rm) await removeAfterEnd(context, id);
    if (flags.cidfile !== undefined && flags.rm) await unlink(flags.cidfile);
    throw error;
  }
  if (flags.rm) removeInBackground(context.address, id);
  console.log(id);
  return 0;
}

async function startAttached({ connection: engine }: Context, id: string, flags: RunFlags): Promise<number> {
  const streams = attachedStreams(flags);
  const { tty } = flags;
  // Attached before the start, so that the first byte is not missed.
  const { socket } = await asEngineFailure(
    containers.attach(engine, id, {
      stream: true,
      stdin: streams.has('stdin') && flags.interactive,
      stdout: streams.has('stdout'),
      stderr: streams.has('stderr'),
      ...(flags['detach-keys'] !== undefined && { detachKeys: flags['detach-keys'] }),
    }),
  );
  using _signals =
    tty || !flags['sig-proxy'] ? undefined : forwardSignals((signal) => containers.kill(engine, id, signal));
  try {
    await startOrExplain(engine, id, flags['detach-keys']);
  } catch (error) {
    socket.destroy();
    throw error;
  }
  await runSession(socket, {
    tty,
    stdin: streams.has('stdin') && flags.interactive,
    resize: (size) => containers.resize(engine, id, size),
  });
  return await exitCodeOf(engine, id);
}

async function removeAfterEnd({ connection: engine, address }: Context, id: string): Promise<void> {
  const { State } = await containers.inspect(engine, id);
  // After a detach it keeps running, and is still removed when it ends.
  if (State.Running) removeInBackground(address, id);
  else await containers.remove(engine, id, { v: true });
}

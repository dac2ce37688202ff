import type { Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';

import { command, MANY, type Given } from '../command-line/command.ts';
import { each } from '../each.ts';
import { UsageError } from '../exit-codes.ts';
import { exitCodeOf } from '../session/exit-code.ts';
import { runSession } from '../session/session.ts';
import { forwardSignals } from '../session/signals.ts';
import { startOrExplain } from './failure-codes.ts';

const FLAGS = {
  attach: { kind: 'boolean', short: 'a', help: 'Show its output, and pass signals on to it' },
  interactive: { kind: 'boolean', short: 'i', help: 'Give it this stdin' },
  'detach-keys': { kind: 'text', value: 'KEYS', help: 'Keys that leave it running (default ctrl-p,ctrl-q)' },
  'sig-proxy': { kind: 'boolean', initial: 'true', help: 'Pass signals on to the container' },
} as const;

/** `gantry start`. */
export const start = command({
  words: 'CONTAINER [CONTAINER...]',
  count: [1, MANY],
  flags: FLAGS,
  offers: 'container',
  examples: ['gantry start web', 'gantry start -ai shell'],
  run: async ({ connection }, refs, flags) => {
    if (flags.attach || flags.interactive) {
      if (refs.length > 1) throw new UsageError('--attach and --interactive need exactly one container');
      return await startAttached(connection, refs[0]!, flags);
    }
    await each(refs, async (ref) => {
      await containers.start(connection, ref, flags['detach-keys']);
      console.log(ref);
    });
    return 0;
  },
});

async function startAttached(engine: Connection, ref: string, flags: Given<typeof FLAGS>): Promise<number> {
  const { Id, Config } = await containers.inspect(engine, ref);
  const stdin = flags.interactive && Config.OpenStdin;
  const tty = Config.Tty;
  // Attached before the start, so that the first byte is not missed.
  const { socket } = await containers.attach(engine, Id, {
    stream: true,
    stdin,
    stdout: true,
    stderr: true,
    ...(flags['detach-keys'] !== undefined && { detachKeys: flags['detach-keys'] }),
  });
  using _signals =
    tty || !flags['sig-proxy'] ? undefined : forwardSignals((signal) => containers.kill(engine, Id, signal));
  try {
    await startOrExplain(engine, Id, flags['detach-keys']);
  } catch (error) {
    socket.destroy();
    throw error;
  }
  await runSession(socket, { tty, stdin, resize: (size) => containers.resize(engine, Id, size) });
  return await exitCodeOf(engine, Id);
}

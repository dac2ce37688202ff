import type { Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';

import { command, MANY, type Given } from '../command-line/command.ts';
import { each } from '../each.ts';
import { UsageError } from '../exit-codes.ts';
import { runAttached } from '../session/attached.ts';
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
  const [detachKeys, passSignals] = [flags['detach-keys'], flags['sig-proxy']];
  return await runAttached(
    engine,
    Id,
    { tty: Config.Tty, stdin, detachKeys, passSignals },
    async () => await startOrExplain(engine, Id, detachKeys),
  );
}

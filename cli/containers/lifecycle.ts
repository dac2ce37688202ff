import * as containers from '@gantry/client/containers.ts';

import { command, MANY, type Context, type Flags, type Given } from '../command-line/command.ts';
import { each } from '../each.ts';
import { UsageError } from '../exit-codes.ts';

const SEVERAL = { words: 'CONTAINER [CONTAINER...]', count: [1, MANY], offers: 'container' } as const;
const GRACE = { kind: 'integer', short: 't', value: 'SECONDS', help: 'Time it has before it is killed' } as const;
const OLD_GRACE = { kind: 'integer', value: 'SECONDS', help: 'The same as --timeout' } as const;
const NO_SIGNAL = 'API 1.24 has no signal for it: --stop-signal of create and run sets one';

/** A command for several containers, which prints the names of those for which it succeeded. */
function forEach<const F extends Flags>(
  flags: F,
  work: (engine: Context['connection'], ref: string, flags: Given<F>) => Promise<void>,
  examples: readonly string[] = [],
) {
  return command<F>({
    ...SEVERAL,
    flags,
    examples,
    run: async ({ connection }, refs, given) => {
      await each(refs, async (ref) => {
        await work(connection, ref, given);
        console.log(ref);
      });
    },
  });
}

export const stop = forEach(
  { timeout: GRACE, time: OLD_GRACE, signal: { kind: 'text', short: 's', help: '', refused: NO_SIGNAL } },
  async (engine, ref, { timeout, time }) => await containers.stop(engine, ref, (timeout ?? time)?.toString()),
  ['gantry stop -t 1 web'],
);

export const restart = forEach(
  { timeout: GRACE, time: OLD_GRACE, signal: { kind: 'text', short: 's', help: '', refused: NO_SIGNAL } },
  async (engine, ref, { timeout, time }) => await containers.restart(engine, ref, (timeout ?? time)?.toString()),
);

export const kill = forEach(
  { signal: { kind: 'text', short: 's', initial: 'KILL', help: 'Name or number' } },
  async (engine, ref, { signal }) => await containers.kill(engine, ref, signal!),
  ['gantry kill -s HUP web'],
);

export const pause = forEach({}, containers.pause);
export const unpause = forEach({}, containers.unpause);

export const wait = command({
  ...SEVERAL,
  flags: {},
  run: async ({ connection }, refs) => {
    await each(refs, async (ref) => console.log(await containers.wait(connection, ref)));
  },
});

export const rename = command({
  words: 'CONTAINER NEW_NAME',
  count: [2, 2],
  flags: {},
  offers: 'container',
  run: async ({ connection }, [ref = '', name = '']) => {
    if (name === '') throw new UsageError('the new name must not be empty');
    await containers.rename(connection, ref, name);
  },
});

export const rm = command({
  ...SEVERAL,
  flags: {
    force: { kind: 'boolean', short: 'f', help: 'Also a running one; a missing one is not an error' },
    link: { kind: 'boolean', short: 'l', help: 'Remove the link of that name, CONTAINER/ALIAS' },
    volumes: { kind: 'boolean', short: 'v', help: 'Remove its anonymous volumes, too' },
  },
  examples: ['gantry rm -fv web', 'gantry rm $(gantry ps -aq --filter status=exited)'],
  run: async ({ connection }, refs, { force, link, volumes }) => {
    await each(
      refs,
      async (ref) => {
        await containers.remove(connection, ref, { force, link, v: volumes });
        console.log(ref);
      },
      { missingIsFine: force },
    );
  },
});

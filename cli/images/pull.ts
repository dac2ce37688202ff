import type { Connection } from '@gantry/client/connection.ts';
import { pullImage } from '@gantry/client/images.ts';

import { command } from '../command-line/command.ts';
import { visible } from '../output/escape.ts';

/** `gantry pull`. */
export const pull = command({
  words: 'NAME[:TAG|@DIGEST]',
  count: [1, 1],
  flags: { quiet: { kind: 'boolean', short: 'q', help: 'No progress' } },
  offers: 'image',
  run: async ({ connection }, [name = ''], { quiet }) => await pullMissing(connection, name, quiet),
});

/** Pulls an image; what happens goes to stderr. */
export async function pullMissing(engine: Connection, name: string, quiet: boolean): Promise<void> {
  await pullImage(engine, name, (line) => {
    if (!quiet) console.error(visible(line));
  });
}

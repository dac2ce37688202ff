import { ApiError, type Connection } from '@gantry/client/connection.ts';
import { pullImage } from '@gantry/client/images.ts';

import { command } from '../command-line/command.ts';
import { EXIT, Exit } from '../exit-codes.ts';
import { visible } from '../output/escape.ts';

const NOT_IMPLEMENTED = 501;

/** `gantry pull`. */
export const pull = command({
  words: 'NAME[:TAG|@DIGEST]',
  count: [1, 1],
  flags: { quiet: { kind: 'boolean', short: 'q', help: 'No progress' } },
  offers: 'image',
  run: async ({ connection }, [name = ''], { quiet }) => await pullOrExplain(connection, name, quiet),
});

/** Pulls; if the engine cannot, names an alternative. */
export async function pullOrExplain(engine: Connection, name: string, quiet: boolean): Promise<void> {
  try {
    await pullImage(engine, name, (line) => {
      if (!quiet) console.error(visible(line));
    });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== NOT_IMPLEMENTED) throw error;
    throw new Exit(EXIT.engineFailed, instead(name));
  }
}

function instead(name: string): string {
  return (
    'pulling from a registry is not built yet. Bring the image as an archive, such as: ' +
    `skopeo copy docker://${name} docker-archive:image.tar:${name} (or: docker save -o image.tar ${name}), then gantry load -i image.tar`
  );
}

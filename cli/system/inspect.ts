import { ApiError, type Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';
import { inspectImage } from '@gantry/client/images.ts';
import { inspectNetwork } from '@gantry/client/networks.ts';
import { inspectVolume } from '@gantry/client/volumes.ts';

import { command, MANY } from '../command-line/command.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { red } from '../output/colour.ts';
import { visibleLines } from '../output/escape.ts';
import { printObjects } from '../output/format.ts';
import { OBJECT_FORMAT } from '../output/list-flags.ts';

type Look = (engine: Connection, ref: string, size: boolean) => Promise<unknown>;

/** In the order of the search for a name. */
const LOOKS: Readonly<Record<string, Look>> = {
  container: containers.inspect,
  image: inspectImage,
  network: inspectNetwork,
  volume: inspectVolume,
};
const SIZE = { kind: 'boolean', short: 's', help: 'With sizes of containers' } as const;

/** `gantry inspect`. */
export const inspect = command({
  words: 'NAME [NAME...]',
  count: [1, MANY],
  flags: {
    ...OBJECT_FORMAT,
    size: SIZE,
    type: { kind: 'text', value: 'TYPE', help: 'Only container, image, network or volume', offers: Object.keys(LOOKS) },
  },
  offers: 'container',
  examples: [
    "gantry inspect --format '{{.State.Status}}' web",
    "gantry inspect --format '{{json .NetworkSettings.Ports}}' web",
  ],
  run: async ({ connection }, refs, { format, size, type }) => {
    if (type !== undefined && !Object.hasOwn(LOOKS, type)) {
      throw new UsageError(`invalid argument "${type}" for "--type" flag: expected ${Object.keys(LOOKS).join(', ')}`);
    }
    const looks = type === undefined ? Object.values(LOOKS) : [LOOKS[type]!];
    await printInspected(refs, async (ref) => await inspectAny(looks, connection, ref, size), format);
  },
});

export const inspectContainers = command({
  words: 'CONTAINER [CONTAINER...]',
  count: [1, MANY],
  flags: { ...OBJECT_FORMAT, size: SIZE },
  offers: 'container',
  run: async ({ connection }, refs, { format, size }) => {
    await printInspected(refs, async (ref) => await containers.inspect(connection, ref, size), format);
  },
});

export const inspectImages = command({
  words: 'IMAGE [IMAGE...]',
  count: [1, MANY],
  flags: OBJECT_FORMAT,
  offers: 'image',
  run: async ({ connection }, refs, { format }) => {
    await printInspected(refs, async (ref) => await inspectImage(connection, ref), format);
  },
});

/** Prints the objects that were found, then reports the others. */
export async function printInspected(
  refs: readonly string[],
  look: (ref: string) => Promise<unknown>,
  format: string | undefined,
): Promise<void> {
  const found: unknown[] = [];
  const failures: string[] = [];
  for (const ref of refs) {
    try {
      found.push(await look(ref));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      failures.push(error.message);
    }
  }
  await printObjects(found, format);
  for (const message of failures) console.error(`${red('gantry:')} ${visibleLines(message)}`);
  if (failures.length > 0) throw new Exit(EXIT.failed);
}

async function inspectAny(looks: readonly Look[], engine: Connection, ref: string, size: boolean): Promise<unknown> {
  for (const look of looks) {
    try {
      return await look(engine, ref, size);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404 || looks.length === 1) throw error;
    }
  }
  throw new ApiError(404, `No such object: ${ref}`);
}

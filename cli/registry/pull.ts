import type { Connection } from '@gantry/client/connection.ts';
import { pullImage } from '@gantry/client/images.ts';

import { command } from '../command-line/command.ts';
import { UsageError } from '../exit-codes.ts';
import { authHeader } from './docker-config.ts';
import { progressOn } from './progress.ts';

/** `gantry pull`. */
export const pull = command({
  words: 'NAME[:TAG|@DIGEST]',
  count: [1, 1],
  flags: {
    'all-tags': { kind: 'boolean', short: 'a', help: 'All tags of the repository' },
    quiet: { kind: 'boolean', short: 'q', help: 'Only the name' },
  },
  offers: 'image',
  run: async ({ connection }, [name = ''], { 'all-tags': isAll, quiet }) => {
    const isTagged = /[:@][^/]+$/.test(name);
    if (isAll && isTagged) throw new UsageError("tag can't be used with --all-tags/-a");
    if (!isAll && !isTagged && !quiet) console.log('Using default tag: latest');
    const asked = isTagged || isAll ? name : `${name}:latest`;
    await transfer(connection, asked, quiet ? undefined : process.stdout);
    if (quiet) console.log(asked);
  },
});

/** Pulls the image that a container needs; stdout is the container's. */
export async function pullMissing(engine: Connection, name: string, quiet: boolean): Promise<void> {
  await transfer(engine, /[:@][^/]+$/.test(name) ? name : `${name}:latest`, quiet ? undefined : process.stderr);
}

async function transfer(engine: Connection, name: string, output: NodeJS.WriteStream | undefined): Promise<void> {
  const show = output === undefined ? (): void => undefined : progressOn(output);
  await pullImage(engine, name, await authHeader(name), show);
}

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
    platform: { kind: 'text', value: 'OS/ARCH', help: 'The platform of the image, such as linux/arm64' },
    quiet: { kind: 'boolean', short: 'q', help: 'Only the name' },
  },
  offers: 'image',
  run: async ({ connection }, [name = ''], { 'all-tags': isAll, platform, quiet }) => {
    const isTagged = /[:@][^/]+$/.test(name);
    if (isAll && isTagged) throw new UsageError("tag can't be used with --all-tags/-a");
    if (!isAll && !isTagged && !quiet) console.log('Using default tag: latest');
    const asked = isTagged || isAll ? name : `${name}:latest`;
    await transfer(connection, { name: asked, platform }, quiet ? undefined : process.stdout);
    if (quiet) console.log(asked);
  },
});

type Wanted = { name: string; platform?: string | undefined };

/** Pulls the image that a container needs; stdout is the container's. */
export async function pullMissing(engine: Connection, { name, platform }: Wanted, quiet: boolean): Promise<void> {
  const tagged = /[:@][^/]+$/.test(name) ? name : `${name}:latest`;
  await transfer(engine, { name: tagged, platform }, quiet ? undefined : process.stderr);
}

async function transfer(engine: Connection, wanted: Wanted, output: NodeJS.WriteStream | undefined): Promise<void> {
  const show = output === undefined ? (): void => undefined : progressOn(output);
  await pullImage(engine, wanted, await authHeader(wanted.name), show);
}

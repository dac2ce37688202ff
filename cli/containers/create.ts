import { writeFile } from 'node:fs/promises';

import { ApiError, type Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';

import { command, MANY, type Given } from '../command-line/command.ts';
import { applyFlags, CREATE_FLAGS } from '../create/flags.ts';
import { bodyOf, emptyRequest, type Purpose } from '../create/request.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { reasonOf } from '../failures.ts';
import { yellow } from '../output/colour.ts';
import { visibleLines } from '../output/escape.ts';
import { pullMissing } from '../registry/pull.ts';

type CreateFlags = Given<typeof CREATE_FLAGS>;
type Stream = 'stdin' | 'stdout' | 'stderr';

/** `gantry create`. */
export const create = command({
  words: 'IMAGE [COMMAND] [ARG...]',
  count: [1, MANY],
  flags: CREATE_FLAGS,
  passesOn: true,
  offers: 'image',
  examples: ['gantry create --name web -p 8080:80 busybox httpd -f -p 80', 'gantry start web'],
  run: async ({ connection }, [image = '', ...words], flags) => {
    if (flags.rm) {
      throw new UsageError(
        '--rm cannot be used with create: API 1.24 does not remove containers automatically; use run --rm',
      );
    }
    const attached = attachedStreams(flags);
    console.log(await createContainer(connection, { image, command: words, attached }, flags));
  },
});

/** The streams named by `--attach`; all but stdin without it, and stdin with `--interactive`. */
export function attachedStreams({ attach, interactive }: Pick<CreateFlags, 'attach' | 'interactive'>): Set<Stream> {
  const named = attach.map((text) => {
    const stream = text.toLowerCase();
    if (stream === 'stdin' || stream === 'stdout' || stream === 'stderr') return stream;
    throw new UsageError(
      `invalid argument "${text}" for "-a, --attach" flag: valid streams are stdin, stdout and stderr`,
    );
  });
  if (named.length > 0) return new Set(named);
  return new Set<Stream>(interactive ? ['stdin', 'stdout', 'stderr'] : ['stdout', 'stderr']);
}

/** Creates the container, pulls a missing image if requested, and writes the id to `--cidfile`. */
export async function createContainer(engine: Connection, purpose: Purpose, flags: CreateFlags): Promise<string> {
  const request = emptyRequest(purpose);
  applyFlags(request, flags);
  const body = bodyOf(request);
  if (!['always', 'missing', 'never'].includes(flags.pull!)) {
    throw new UsageError(`invalid argument "${flags.pull}" for "--pull" flag: expected always, missing or never`);
  }
  if (flags.cidfile !== undefined) await writeNew(flags.cidfile, '');
  if (flags.pull === 'always')
    await pullMissing(engine, { name: purpose.image, platform: flags.platform }, flags.quiet);
  const id = await createOrPull(engine, body, flags);
  if (flags.cidfile !== undefined) await writeFile(flags.cidfile, id);
  return id;
}

async function createOrPull(engine: Connection, body: containers.CreateBody, flags: CreateFlags): Promise<string> {
  try {
    return await createAndWarn(engine, body, flags);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404 || flags.pull === 'never' || !isMissingImage(error))
      throw error;
    console.error(`Unable to find image '${taggedName(body.Image ?? '')}' locally`);
    await pullMissing(engine, { name: body.Image ?? '', platform: flags.platform }, flags.quiet);
    return await createAndWarn(engine, body, flags);
  }
}

/** The name with its tag; without one, the tag that is meant. */
function taggedName(image: string): string {
  return /@|:[^/]*$/.test(image) ? image : `${image}:latest`;
}

/** 404 can also mean a container whose volumes or network are to be shared. */
function isMissingImage({ message }: ApiError): boolean {
  return /^no such image/i.test(message);
}

async function createAndWarn(
  engine: Connection,
  body: containers.CreateBody,
  { name, platform }: Pick<CreateFlags, 'name' | 'platform'>,
): Promise<string> {
  const { Id, Warnings } = await containers.create(engine, body, { name, platform });
  for (const warning of Warnings ?? []) console.error(`${yellow('WARNING:')} ${visibleLines(warning)}`);
  return Id;
}

/** An existing file belongs to another container. */
async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx' });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    const reason = error.code === 'EEXIST' ? 'it exists already: remove it or name another' : reasonOf(error);
    throw new Exit(EXIT.engineFailed, `cannot write the container's id to ${file}: ${reason}`);
  }
}

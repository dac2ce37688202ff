import { BuildContext } from '../../builder/context/context.ts';
import { remoteContext } from '../../builder/context/remote.ts';
import type { Engine } from '../../engine.ts';
import type { StatusQueue } from '../progress/status-queue.ts';
import { transferred } from '../progress/transfer.ts';
import { Vertex } from '../progress/vertex.ts';
import { archiveOf } from '../session/context-archive.ts';
import { syncedFiles } from '../session/file-sync.ts';
import type { Session } from '../session/session.ts';
import { readIgnoreFile, readSource, type Source } from './source.ts';

/** The address of an archive that the client itself sends: its standard input. */
const UPLOAD = /^https?:\/\/buildkit-session(\/.*)$/;

export type Request = Readonly<{
  attributes: ReadonlyMap<string, string>;
  session: Session;
  queue: StatusQueue;
  signal: AbortSignal;
}>;

/** The Buildfile, and its context, which is asked for when a step needs it. */
export type Input = Readonly<{ name: string; text: string; context: () => Promise<BuildContext | undefined> }>;

/** From folders of the client, or from an address. `path`: the folder of the build. */
export async function inputOf(engine: Engine, request: Request, file: string, path: string): Promise<Input> {
  const { attributes } = request;
  const address = attributes.get(attributes.get('contextkey') ?? 'context');
  if (address === undefined) {
    const source = await sourceOf(engine, request, file);
    return { ...source, context: onceOnly(async () => await contextOf(engine, request, source, path)) };
  }
  const remote = await remoteInput(engine, request, { address, file, path });
  if (!attributes.has('dockerfilekey')) return remote;
  return { ...(await sourceOf(engine, request, file)), context: remote.context };
}

async function remoteInput(
  engine: Engine,
  { attributes, session, queue, signal }: Request,
  { address, file, path }: Readonly<{ address: string; file: string; path: string }>,
): Promise<Input> {
  const vertex = new Vertex(queue, engine.clock, '[internal] load remote build context');
  return await vertex.run(async () => {
    const [, upload] = UPLOAD.exec(address) ?? [];
    const how = { folder: path, report: vertex.report, signal };
    const remote =
      upload === undefined
        ? await remoteContext(engine, address, how, 'buildkit')
        : { archive: session.upload(upload, signal) };
    if ('text' in remote) {
      return { name: 'Dockerfile', text: remote.text, context: async () => await Promise.resolve(undefined) };
    }
    const context = await BuildContext.receive(engine, remote.archive, path);
    const source = attributes.has('dockerfilekey') ? { name: '', text: '' } : await context.instructions(file);
    await context.applyIgnoreFile(signal);
    return { ...source, context: async () => await Promise.resolve(context) };
  });
}

async function sourceOf(
  { clock }: Engine,
  { attributes, session, queue, signal }: Request,
  file: string,
): Promise<Source> {
  const folder = attributes.get('dockerfilekey') ?? 'dockerfile';
  const vertex = `[internal] load build definition from ${file || 'Dockerfile'}`;
  return await transferred(queue, clock, { vertex, name: 'transferring dockerfile:' }, async (onBytes) => {
    return await readSource(session, { folder, onBytes }, file, signal);
  });
}

/** The client's files, without those that its ignore file names. */
async function contextOf(
  engine: Engine,
  { attributes, session, queue, signal }: Request,
  source: Source,
  path: string,
): Promise<BuildContext> {
  const { clock } = engine;
  const folder = attributes.get('contextkey') ?? 'context';
  const name = 'transferring context:';
  const ignored = { vertex: '[internal] load .dockerignore', name };
  const excluded =
    source.excluded ??
    (await transferred(
      queue,
      clock,
      ignored,
      async (onBytes) => await readIgnoreFile(session, { folder, onBytes }, signal),
    ));
  return await transferred(queue, clock, { vertex: '[internal] load build context', name }, async (onBytes) => {
    const files = syncedFiles(session, { folder, excluded, onBytes }, signal);
    return await BuildContext.receive(engine, archiveOf(files), path);
  });
}

function onceOnly<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return async () => await (result ??= work());
}

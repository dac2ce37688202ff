import { BuildContext } from '../../builder/context/context.ts';
import { remoteContext } from '../../builder/context/remote.ts';
import type { Engine } from '../../engine.ts';
import type { StatusQueue } from '../progress/status-queue.ts';
import { transferred } from '../progress/transfer.ts';
import { Vertex } from '../progress/vertex.ts';
import { archiveOf } from '../session/context-archive.ts';
import { syncedFiles } from '../session/file-sync.ts';
import type { Session } from '../session/session.ts';
import type { Warning } from './checks/linter.ts';
import { readIgnoreFile, readSource, type Source } from './source.ts';

/** The address of an archive that the client itself sends: its standard input. */
const UPLOAD = /^https?:\/\/buildkit-session(\/.*)$/;

export type Request = Readonly<{
  attributes: ReadonlyMap<string, string>;
  session: Session;
  queue: StatusQueue;
  entitlements: readonly string[];
  signal: AbortSignal;
}>;

/** The Buildfile, and its context, which is asked for when a step needs it. */
export type Input = Readonly<{
  name: string;
  text: string;
  context: () => Promise<BuildContext | undefined>;
  /** Patterns of files that are left out of the context. */
  excluded: () => Promise<readonly string[]>;
  /** Shows a warning of the checks. */
  warn: (warning: Warning) => void;
}>;

/** From folders of the client, or from an address. `path`: the folder of the build. */
export async function inputOf(engine: Engine, request: Request, file: string, path: string): Promise<Input> {
  const { attributes } = request;
  const address = attributes.get(attributes.get('contextkey') ?? 'context');
  if (address === undefined) {
    const source = await sourceOf(engine, request, file);
    const excluded = onceOnly(async () => source.excluded ?? (await ignoreFileOf(engine, request)));
    return { ...source, excluded, context: onceOnly(async () => await contextOf(engine, request, excluded, path)) };
  }
  const remote = await remoteInput(engine, request, { address, file, path });
  if (!attributes.has('dockerfilekey')) return remote;
  const source = await sourceOf(engine, request, file);
  return { ...source, excluded: remote.excluded, context: remote.context };
}

async function remoteInput(
  engine: Engine,
  { attributes, session, queue, signal }: Request,
  { address, file, path }: Readonly<{ address: string; file: string; path: string }>,
): Promise<Input> {
  const vertex = new Vertex(queue, engine.clock, '[internal] load remote build context');
  const more = { excluded: async () => await Promise.resolve([]), warn: vertex.warnOf };
  return await vertex.run(async () => {
    const [, upload] = UPLOAD.exec(address) ?? [];
    const how = { folder: path, report: vertex.report, signal };
    const remote =
      upload === undefined
        ? await remoteContext(engine, address, how, 'buildkit')
        : { archive: session.upload(upload, signal) };
    if ('text' in remote) {
      return { ...more, name: 'Dockerfile', text: remote.text, context: async () => await Promise.resolve(undefined) };
    }
    const context = await BuildContext.receive(engine, remote.archive, path, signal);
    const source = attributes.has('dockerfilekey') ? { name: '', text: '' } : await context.instructions(file);
    await context.applyIgnoreFile();
    return { ...more, ...source, context: async () => await Promise.resolve(context) };
  });
}

async function sourceOf(
  { clock }: Engine,
  { attributes, session, queue, signal }: Request,
  file: string,
): Promise<Source & Pick<Input, 'warn'>> {
  const folder = attributes.get('dockerfilekey') ?? 'dockerfile';
  const vertex = new Vertex(queue, clock, `[internal] load build definition from ${file || 'Dockerfile'}`);
  const source = await transferred(vertex, clock, 'transferring dockerfile:', async (onBytes) => {
    return await readSource(session, { folder, onBytes }, file, signal);
  });
  return { ...source, warn: vertex.warnOf };
}

async function ignoreFileOf(
  { clock }: Engine,
  { attributes, session, queue, signal }: Request,
): Promise<readonly string[]> {
  const folder = attributes.get('contextkey') ?? 'context';
  const vertex = new Vertex(queue, clock, '[internal] load .dockerignore');
  return await transferred(vertex, clock, 'transferring context:', async (onBytes) => {
    return await readIgnoreFile(session, { folder, onBytes }, signal);
  });
}

/** The client's files, without those that its ignore file names. */
async function contextOf(
  engine: Engine,
  { attributes, session, queue, signal }: Request,
  excluded: Input['excluded'],
  path: string,
): Promise<BuildContext> {
  const { clock } = engine;
  const folder = attributes.get('contextkey') ?? 'context';
  const left = await excluded();
  const vertex = new Vertex(queue, clock, '[internal] load build context');
  return await transferred(vertex, clock, 'transferring context:', async (onBytes) => {
    const files = syncedFiles(session, { folder, excluded: left, onBytes }, signal);
    return await BuildContext.receive(engine, archiveOf(files), path, signal);
  });
}

function onceOnly<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return async () => await (result ??= work());
}

import { BuildContext } from '../../builder/context/context.ts';
import { remoteContext } from '../../builder/context/remote.ts';
import type { Engine } from '../../engine.ts';
import type { Caches } from '../caches/cache-options.ts';
import type { Definition } from '../messages/definition.ts';
import type { StatusQueue } from '../progress/status-queue.ts';
import { transferred } from '../progress/transfer.ts';
import { Vertex } from '../progress/vertex.ts';
import { archiveOf } from '../session/context-archive.ts';
import { syncedFiles } from '../session/file-sync.ts';
import type { Session } from '../session/session.ts';
import { Transfer } from '../session/transfer.ts';
import type { Received } from '../wire/message.ts';
import type { Warning } from './checks/linter.ts';
import { readIgnoreFile, readSource, type Source } from './source.ts';

/** The address of an archive that the client itself sends: its standard input. */
const UPLOAD = /^https?:\/\/buildkit-session(\/.*)$/;

export type Request = Readonly<{
  attributes: ReadonlyMap<string, string>;
  session: Session;
  queue: StatusQueue;
  entitlements: readonly string[];
  caches: Caches;
  /** Results of other builds by their names. */
  inputs: ReadonlyMap<string, Received<typeof Definition>>;
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
    const ignored = async (): Promise<readonly string[]> =>
      await ignoreFileOf(engine, request, attributes.get('contextkey') ?? 'context');
    const excluded = onceOnly(async () => source.excluded ?? (await ignored()));
    const folder = attributes.get('contextkey') ?? 'context';
    const context = async (): Promise<BuildContext> =>
      await clientContext(engine, request, { folder, title: '[internal] load build context', excluded, path });
    return { ...source, excluded, context: onceOnly(context) };
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
    const keepsGitFolder = /^(?:1|t|true)$/i.test(attributes.get('build-arg:BUILDKIT_CONTEXT_KEEP_GIT_DIR') ?? '');
    const how = { folder: path, report: vertex.report, signal, keepsGitFolder };
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

/** The patterns of the ignore file in a folder of the client. */
export async function ignoreFileOf(
  { clock }: Engine,
  { session, queue, signal }: Request,
  folder: string,
  title = '[internal] load .dockerignore',
): Promise<readonly string[]> {
  const vertex = new Vertex(queue, clock, title);
  return await transferred(vertex, clock, 'transferring context:', async (onBytes) => {
    return await readIgnoreFile(session, { folder, onBytes }, signal);
  });
}

type ClientFolder = Readonly<{
  /** The name of the folder for the client. */
  folder: string;
  title: string;
  excluded: Input['excluded'];
  /** Where the files are kept meanwhile. */
  path: string;
}>;

/** The files of a client's folder, without those that its ignore file names. */
export async function clientContext(
  engine: Engine,
  { session, queue, signal }: Request,
  { folder, title, excluded, path }: ClientFolder,
): Promise<BuildContext> {
  const { clock } = engine;
  const left = await excluded();
  const vertex = new Vertex(queue, clock, title);
  return await transferred(vertex, clock, 'transferring context:', async (onBytes) => {
    const { sharedKey } = session;
    const key = sharedKey === undefined ? undefined : JSON.stringify([sharedKey, folder]);
    await using kept = key === undefined ? undefined : await engine.keptContexts.open(key);
    const own = BuildContext.filesIn(path);
    const transfer = new Transfer(kept, own);
    const files = syncedFiles(session, { folder, excluded: left, onBytes, transfer }, signal);
    const first = await files.next(); // behind the names of all files
    const archive = archiveOf(from(first, files), transfer);
    if (transfer.takesOver === 'all') {
      for await (const _rest of archive);
      return await BuildContext.again(engine, path, signal);
    }
    const { removed, behind, takesOver } = transfer;
    const context =
      takesOver === 'nothing'
        ? await BuildContext.receive(engine, archive, path, signal)
        : await BuildContext.changed(engine, archive, { folder: path, behind, removed }, signal);
    if (key !== undefined) await engine.keptContexts.keep(key, own, transfer.index());
    return context;
  });
}

async function* from<T>(first: IteratorResult<T, unknown>, rest: AsyncGenerator<T>): AsyncGenerator<T> {
  if (first.done === true) return;
  yield first.value;
  yield* rest;
}

function onceOnly<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return async () => await (result ??= work());
}

import type { Instruction } from '../../buildfile/instruction.ts';
import { planIn } from '../../builder/build-request.ts';
import { Build } from '../../builder/build.ts';
import { BuildContext, buildFolder } from '../../builder/context/context.ts';
import type { Engine } from '../../engine.ts';
import type { Image } from '../../images/store.ts';
import { EngineError } from '../../lib/errors.ts';
import { count } from '../../lib/measures.ts';
import { finishedImage } from '../export/finished-image.ts';
import { StageVertexes } from '../progress/stage-vertexes.ts';
import type { StatusQueue } from '../progress/status-queue.ts';
import { Vertex } from '../progress/vertex.ts';
import { archiveOf } from '../session/context-archive.ts';
import { syncedFiles } from '../session/file-sync.ts';
import type { Session } from '../session/session.ts';
import { statusAt, type Place } from './errors.ts';
import { optionsOf } from './options.ts';
import { readIgnoreFile, readSource, type Source } from './source.ts';

type Request = Readonly<{
  attributes: ReadonlyMap<string, string>;
  session: Session;
  queue: StatusQueue;
  signal: AbortSignal;
}>;

/** Builds what a client asks the frontend `dockerfile.v0` for. Throws `GrpcError`, with the place in the Buildfile. */
export async function buildForSession(engine: Engine, request: Request): Promise<Image> {
  const { attributes, session, queue, signal } = request;
  refuseUnknown(attributes);
  count('builds');
  const options = optionsOf(attributes, session, signal);
  const vertex = (name: string): Vertex => new Vertex(queue, engine.clock, name);
  const dockerfileFolder = attributes.get('dockerfilekey') ?? 'dockerfile';
  const source = await vertex(`[internal] load build definition from ${options.file || 'Dockerfile'}`).run(
    async () => await readSource(session, dockerfileFolder, options.file, signal),
  );
  const plan = await planIn(source.name, source.text, signal);
  await using folder = await buildFolder(engine);
  let output: StageVertexes | undefined;
  try {
    const build = new Build(engine, {
      options,
      plan,
      context: onceOnly(async () => await contextOf(engine, request, source, folder.path)),
      folder: folder.path,
      output: (stages) => (output = new StageVertexes(queue, engine.clock, stages)),
      signal,
      wantsAux: false,
    });
    const { image, told } = await build.run();
    return finishedImage(engine, image, told);
  } catch (error) {
    throw statusAt(error, placeOf(source, output?.failed));
  }
}

function placeOf(
  { name, text }: Source,
  failed: Readonly<{ instruction: Instruction; vertex: string | undefined }> | undefined,
): Place | undefined {
  return failed && { name, text, ...failed };
}

async function contextOf(
  engine: Engine,
  { attributes, session, queue, signal }: Request,
  source: Source,
  folder: string,
): Promise<BuildContext> {
  const name = attributes.get('contextkey') ?? 'context';
  const vertex = (text: string): Vertex => new Vertex(queue, engine.clock, text);
  const excluded =
    source.excluded ??
    (await vertex('[internal] load .dockerignore').run(async () => await readIgnoreFile(session, name, signal)));
  return await vertex('[internal] load build context').run(
    async () => await BuildContext.receive(engine, archiveOf(syncedFiles(session, { folder: name, excluded }, signal)), folder),
  );
}

function onceOnly<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return async () => await (result ??= work());
}

/** Options that would change the result, and are not there yet. */
function refuseUnknown(attributes: ReadonlyMap<string, string>): void {
  for (const [key, value] of attributes) {
    if (key.startsWith('context:')) throw notYet(`the build context ${key.slice('context:'.length)}`);
    if (key === 'context' || key === 'contextsubdir') throw notYet(`the remote context ${value}`);
    if (key === 'requestid') throw notYet(`the request ${value}`);
  }
}

function notYet(subject: string): EngineError {
  return new EngineError('notImplemented', `${subject} is not implemented yet`);
}


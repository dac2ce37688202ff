import { planIn } from '../../builder/build-request.ts';
import { Build } from '../../builder/build.ts';
import { BuildContext, buildFolder } from '../../builder/context/context.ts';
import { InstructionError, type Plan } from '../../buildfile/stages.ts';
import type { Engine } from '../../engine.ts';
import type { Image } from '../../images/store.ts';
import { EngineError } from '../../lib/errors.ts';
import { count } from '../../lib/measures.ts';
import { finishedImage } from '../export/finished-image.ts';
import { StageVertexes } from '../progress/stage-vertexes.ts';
import type { StatusQueue } from '../progress/status-queue.ts';
import { transferred } from '../progress/transfer.ts';
import { archiveOf } from '../session/context-archive.ts';
import { syncedFiles } from '../session/file-sync.ts';
import type { Session } from '../session/session.ts';
import { statusAt } from './errors.ts';
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
  const source = await sourceOf(engine, request, options.file);
  const plan = await planOf(source, signal);
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
    const { name, text } = source;
    throw statusAt(error, output?.failed && { name, text, ...output.failed });
  }
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

/** Throws `GrpcError`, with the line. */
async function planOf({ name, text }: Source, signal: AbortSignal): Promise<Plan> {
  try {
    return await planIn(name, text, signal);
  } catch (error) {
    if (!(error instanceof InstructionError)) throw error;
    throw statusAt(error, { name, text, instruction: { number: error.number, end: error.number } });
  }
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

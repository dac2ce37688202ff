import type { Dialect } from '../buildfile/dialect.ts';
import { parseInSteps, type ParsedFile } from '../buildfile/parse.ts';
import { planInSteps, type Plan, type Stage } from '../buildfile/stages.ts';
import type { Engine } from '../engine.ts';
import type { Image } from '../images/store.ts';
import { runInSlices } from '../lib/concurrency/slices.ts';
import { EngineError } from '../lib/errors.ts';
import { count } from '../lib/measures.ts';
import { Build } from './build.ts';
import { BuildContext, buildFolder } from './context/context.ts';
import { remoteContext } from './context/remote.ts';
import type { BuildOptions } from './options.ts';
import { OrderedOutputs } from './ordered-outputs.ts';
import type { Sink } from './output.ts';

type Request = Readonly<{
  options: BuildOptions;
  /** The context, unless it is remote. */
  body: AsyncIterable<Uint8Array>;
  client: Sink;
  signal: AbortSignal;
  wantsAux: boolean;
}>;

/**
 * Builds an image. All checks come before the first step. It ends with its client, and leaves the images of finished
 * steps for later builds. Specification, endpoint 30.
 */
export async function buildFromRequest(engine: Engine, request: Request): Promise<Image> {
  const { options, client, signal, wantsAux } = request;
  count('builds');
  await using folder = await buildFolder(engine);
  using undo = new DisposableStack();
  const { context, text, name } = await inputOf(engine, request, folder.path, undo);
  const plan = await planIn(name, text, signal);
  try {
    const output = (stages: readonly Stage[]): OrderedOutputs => new OrderedOutputs(client, folder.path, stages.length);
    const { image } = await new Build(engine, {
      options,
      plan,
      context: async () => await Promise.resolve(context),
      folder: folder.path,
      output,
      signal,
      wantsAux,
    }).run();
    return image;
  } catch (error) {
    count(signal.aborted ? 'build_canceled' : 'error_processing_commands_error');
    throw error;
  }
}

type Input = Readonly<{ context: BuildContext | undefined; name: string; text: string }>;

async function inputOf(
  engine: Engine,
  { options, body, client, signal }: Request,
  folder: string,
  undo: DisposableStack,
): Promise<Input> {
  const remote =
    options.remote === ''
      ? undefined
      : await remoteContext(engine, options.remote, { folder, report: client.report, signal });
  if (remote !== undefined && 'text' in remote) return { context: undefined, name: 'Dockerfile', text: remote.text };
  const context = undo.use(await BuildContext.receive(engine, remote?.archive ?? body, folder, signal));
  const { name, text } = await context.instructions(options.file);
  await context.applyIgnoreFile();
  return { context, name, text };
}

/** Throws `invalid`, with the line. */
export async function planIn(
  name: string,
  text: string,
  signal: AbortSignal,
  dialect: Dialect = 'classic',
): Promise<Plan> {
  try {
    const file =
      dialect === 'classic' ? await parsed(name, text, signal) : await runInSlices(parseInSteps(text, dialect), signal);
    return await runInSlices(planInSteps(file), signal);
  } catch (error) {
    count('dockerfile_syntax_error');
    throw error;
  }
}

async function parsed(name: string, text: string, signal: AbortSignal): Promise<ParsedFile> {
  try {
    return await runInSlices(parseInSteps(text), signal);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('invalid', `failed to parse ${name}: ${error.message}`, { cause: error });
  }
}

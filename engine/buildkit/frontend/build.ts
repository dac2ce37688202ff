import { planIn } from '../../builder/build-request.ts';
import { Build } from '../../builder/build.ts';
import { buildFolder } from '../../builder/context/context.ts';
import type { BuildOptions } from '../../builder/options.ts';
import type { KeyedStep } from '../../builder/stage.ts';
import { epochIn } from '../../builder/steps/folder-times.ts';
import { LocatedError } from '../../buildfile/located-error.ts';
import type { Plan } from '../../buildfile/stages.ts';
import type { Engine } from '../../engine.ts';
import { platformText, type Platform } from '../../images/configuration/platform.ts';
import type { Image } from '../../images/store.ts';
import { EngineError } from '../../lib/errors.ts';
import { count } from '../../lib/measures.ts';
import { inlineCache } from '../caches/export.ts';
import { importCaches } from '../caches/import.ts';
import { finishedImage } from '../export/finished-image.ts';
import { StageVertexes } from '../progress/stage-vertexes.ts';
import { checkFile, linterOf } from './checks/check-file.ts';
import { statusAt } from './errors.ts';
import { inputOf, type Input, type Request } from './input.ts';
import { NamedContexts } from './named-contexts.ts';
import { optionsOf, platformArgs, platformsOf } from './options.ts';
import { answerRequest, type Answer } from './requests.ts';
import { refuseOtherSyntax } from './syntax.ts';

/** The result for one platform. */
export type Built = Readonly<{
  platform: Platform;
  image: Image;
  /** The time that the client wants for all that the build makes. */
  epoch: Temporal.Instant | undefined;
  /** The steps of its stage, and those of all stages, for caches. */
  steps: readonly KeyedStep[];
  allSteps: readonly KeyedStep[];
}>;
type Result = Readonly<{ answer: Answer; built?: undefined } | { built: readonly Built[]; answer?: undefined }>;

/** Answers a request, or builds what a client asks the frontend `dockerfile.v0` for. Throws `GrpcError`, with the place. */
export async function answerOrBuild(engine: Engine, request: Request): Promise<Result> {
  const { attributes, session, signal } = request;
  refuseUnknown(attributes);
  const options = withStage(optionsOf(attributes, session, signal));
  await using folder = await buildFolder(engine);
  const input = await inputOf(engine, request, options.file, folder.path);
  const id = attributes.get('requestid');
  if (id === undefined) return { built: await build(engine, request, { options, input, folder: folder.path }) };
  const plan = async (): Promise<Plan> => await readPlan(input, request);
  return await located(input, async () => ({
    answer: await answerRequest(engine, id, { plan, input, options, attributes, signal }),
  }));
}

/** Like `answerOrBuild`, for a client that wants an image. */
export async function buildForSession(engine: Engine, request: Request): Promise<readonly Built[]> {
  const { built } = await answerOrBuild(engine, request);
  if (built === undefined) throw new EngineError('invalid', 'a request has no image: ask for it by the bridge');
  return built;
}

/** The argument with the name of the target. */
function withStage(options: BuildOptions): BuildOptions {
  return { ...options, automaticArgs: { ...options.automaticArgs, TARGETSTAGE: options.target || 'default' } };
}

type Parts = Readonly<{ options: BuildOptions; input: Input; folder: string }>;

async function build(engine: Engine, request: Request, { options, input, folder }: Parts): Promise<readonly Built[]> {
  const { attributes, signal } = request;
  count('builds');
  const plan = await located(input, async () => {
    const read = await readPlan(input, request);
    await checkBefore(engine, { plan: read, input, options, attributes, signal });
    refuseHostNetwork(read, request);
    return read;
  });
  const platforms = platformsOf(attributes);
  using resources = new DisposableStack();
  const { credentials } = options;
  const { caches } = request;
  const imported = await importCaches(engine, caches.imports, { ...request, credentials, platforms }, resources);
  const built: Built[] = [];
  // One after the other: they share the folder of the build, and their steps the processors.
  for (const platform of platforms) {
    const automaticArgs = { ...options.automaticArgs, ...platformArgs(platform) };
    const parts = { options: { ...options, platform, automaticArgs, imported }, input, folder };
    const shown = platforms.length > 1 && platform !== undefined ? platformText(platform) : '';
    built.push(await buildOne(engine, request, parts, { plan, shown }));
  }
  return built;
}

/** `shown`: the platform in the names of steps, if there are several. */
async function buildOne(
  engine: Engine,
  request: Request,
  { options, input, folder }: Parts,
  { plan, shown }: Readonly<{ plan: Plan; shown: string }>,
): Promise<Built> {
  const { queue, signal } = request;
  let output: StageVertexes | undefined;
  try {
    const { image, steps, allSteps, ...more } = await new Build(engine, {
      options,
      plan,
      context: input.context,
      folder,
      output: (stages) => (output = new StageVertexes(queue, engine.clock, { stages, all: plan.stages, shown })),
      signal,
      wantsAux: false,
      named: new NamedContexts(engine, { request, options, folder }),
    }).run();
    const inline = request.caches.isInline ? await inlineCache(engine, steps) : undefined;
    const seconds = epochIn(options.args);
    const epoch = seconds === undefined ? undefined : Temporal.Instant.fromEpochMilliseconds(seconds * 1000);
    const finished = finishedImage(engine, image, { ...more, epoch, inline });
    return { platform: options.platform ?? platformOf(finished), image: finished, epoch, steps, allSteps };
  } catch (error) {
    const { name, text } = input;
    throw statusAt(error, output?.failed && { name, text, ...output.failed });
  }
}

function platformOf({ os, architecture, variant }: Image): Platform {
  return { os, architecture, variant };
}

/** Tells the warnings of the checks, also those in front of a mistake that ends them. */
async function checkBefore(engine: Engine, file: Parameters<typeof checkFile>[1]): Promise<void> {
  const linter = linterOf(file);
  try {
    await checkFile(engine, file, linter, { allStages: false });
  } finally {
    for (const warning of linter.warnings) file.input.warn(warning);
  }
}

/** A file alone cannot ask for the network of the machine. Throws `invalid`. */
function refuseHostNetwork({ stages }: Plan, { entitlements }: Request): void {
  if (entitlements.includes('network.host')) return;
  const asks = stages.some(({ steps }) => steps.some((step) => step.kind === 'run' && step.network === 'host'));
  if (asks) throw new EngineError('invalid', 'failed to load LLB: network.host is not allowed');
}

async function readPlan({ text, name }: Input, { attributes, signal }: Request): Promise<Plan> {
  refuseOtherSyntax(text, attributes);
  return await planIn(name, text, signal, 'buildkit');
}

/** Failures with the lines of the file. Throws `GrpcError`. */
async function located<T>({ name, text }: Input, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LocatedError)) throw error;
    throw statusAt(error, { name, text, instruction: error });
  }
}

/** Options that would change the result, and are not there yet. */
function refuseUnknown(attributes: ReadonlyMap<string, string>): void {
  for (const [key, value] of attributes) {
    if (key === 'contextsubdir') throw notYet(`the folder ${value} of a context`);
  }
}

function notYet(subject: string): EngineError {
  return new EngineError('notImplemented', `${subject} is not implemented yet`);
}

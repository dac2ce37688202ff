import { planIn } from '../../builder/build-request.ts';
import { Build } from '../../builder/build.ts';
import { buildFolder } from '../../builder/context/context.ts';
import { LocatedError } from '../../buildfile/located-error.ts';
import type { Plan } from '../../buildfile/stages.ts';
import type { Engine } from '../../engine.ts';
import type { Image } from '../../images/store.ts';
import { EngineError } from '../../lib/errors.ts';
import { count } from '../../lib/measures.ts';
import { finishedImage } from '../export/finished-image.ts';
import { StageVertexes } from '../progress/stage-vertexes.ts';
import { statusAt } from './errors.ts';
import { inputOf, type Input, type Request } from './input.ts';
import { optionsOf } from './options.ts';
import { refuseOtherSyntax } from './syntax.ts';

/** Builds what a client asks the frontend `dockerfile.v0` for. Throws `GrpcError`, with the place in the Buildfile. */
export async function buildForSession(engine: Engine, request: Request): Promise<Image> {
  const { attributes, session, queue, signal } = request;
  refuseUnknown(attributes);
  count('builds');
  const options = optionsOf(attributes, session, signal);
  await using folder = await buildFolder(engine);
  const input = await inputOf(engine, request, options.file, folder.path);
  const plan = await planOf(input, request);
  let output: StageVertexes | undefined;
  try {
    const build = new Build(engine, {
      options,
      plan,
      context: input.context,
      folder: folder.path,
      output: (stages) => (output = new StageVertexes(queue, engine.clock, stages)),
      signal,
      wantsAux: false,
    });
    const { image, historyLines } = await build.run();
    return finishedImage(engine, image, historyLines);
  } catch (error) {
    const { name, text } = input;
    throw statusAt(error, output?.failed && { name, text, ...output.failed });
  }
}

/** Throws `GrpcError`, with the line. */
async function planOf({ name, text }: Input, { attributes, signal }: Request): Promise<Plan> {
  try {
    refuseOtherSyntax(text, attributes);
    return await planIn(name, text, signal, 'buildkit');
  } catch (error) {
    if (!(error instanceof LocatedError)) throw error;
    throw statusAt(error, { name, text, instruction: error });
  }
}

/** Options that would change the result, and are not there yet. */
function refuseUnknown(attributes: ReadonlyMap<string, string>): void {
  for (const [key, value] of attributes) {
    if (key.startsWith('context:')) throw notYet(`the build context ${key.slice('context:'.length)}`);
    if (key === 'contextsubdir') throw notYet(`the folder ${value} of a context`);
    if (key === 'requestid') throw notYet(`the request ${value}`);
  }
}

function notYet(subject: string): EngineError {
  return new EngineError('notImplemented', `${subject} is not implemented yet`);
}

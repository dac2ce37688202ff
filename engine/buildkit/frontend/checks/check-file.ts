import { ignores, patternsOf } from '@gantry/template/ignore-file.ts';

import type { BuildOptions } from '../../../builder/options.ts';
import type { Plan } from '../../../buildfile/stages.ts';
import type { Engine } from '../../../engine.ts';
import { EngineError } from '../../../lib/errors.ts';
import { runConfigOf, type RunConfig } from '../../../records/run-config.ts';
import type { Input, Request } from '../input.ts';
import { evaluate, type Target } from './evaluate.ts';
import { checkOptions, Linter } from './linter.ts';
import { RULES } from './rules.ts';

const ARGUMENT = 'build-arg:BUILDKIT_DOCKERFILE_CHECK';

type File = Readonly<{ plan: Plan; input: Input; options: BuildOptions; attributes: Request['attributes'] }>;

/** The rules that a file, or the client, wants to be checked by. Throws `invalid`. */
export function linterOf({ plan, attributes }: Pick<File, 'plan' | 'attributes'>): Linter {
  return new Linter(checkOptions(attributes.get(ARGUMENT) ?? plan.file.directives.get('check')?.value ?? ''));
}

/** Checks a file before its first step. Images that are not here are not fetched: their variables count as known. */
export async function checkFile(
  engine: Engine,
  { plan, input, options }: File,
  linter: Linter,
  how: Readonly<{ allStages: boolean }>,
): Promise<Target> {
  const ignored = linter.counts(RULES.copyIgnoredFile) ? patternsOf(await input.excluded()) : [];
  return evaluate({
    file: plan.file,
    plan,
    linter,
    given: options.args,
    automatic: options.automaticArgs,
    target: options.target,
    allStages: how.allStages,
    configOf: (name) => configOf(engine, name, options),
    isIgnored: ignored.length === 0 ? undefined : (path) => ignores(ignored, path.replace(/^\/+|^\.\//, '')),
  });
}

function configOf({ images }: Engine, name: string, { platform }: BuildOptions): RunConfig | undefined {
  try {
    return runConfigOf(images.find(name, platform).wireConfig);
  } catch (error) {
    if (error instanceof EngineError) return undefined; // the step itself will say why
    throw error;
  }
}

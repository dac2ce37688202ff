import { ignores, patternsOf } from '@gantry/template/ignore-file.ts';

import type { BuildOptions } from '../../../builder/options.ts';
import type { Plan } from '../../../buildfile/stages.ts';
import type { Engine } from '../../../engine.ts';
import { runInSlices } from '../../../lib/concurrency/slices.ts';
import { EngineError } from '../../../lib/errors.ts';
import { runConfigOf, type RunConfig } from '../../../records/run-config.ts';
import type { Input, Request } from '../input.ts';
import { evaluateInSteps, type Target } from './evaluate.ts';
import { checkOptions, Linter } from './linter.ts';
import { RULES } from './rules.ts';

/** Characters of a path times those of all patterns, for all paths of a file: later ones count as not ignored. */
const MAX_MATCHED = 20_000_000;
const ARGUMENT = 'build-arg:BUILDKIT_DOCKERFILE_CHECK';

type File = Readonly<{
  plan: Plan;
  input: Input;
  options: BuildOptions;
  attributes: Request['attributes'];
  signal: AbortSignal;
}>;

/** The rules that a file, or the client, wants to be checked by. Throws `invalid`. */
export function linterOf({ plan, attributes }: Pick<File, 'plan' | 'attributes'>): Linter {
  return new Linter(checkOptions(attributes.get(ARGUMENT) ?? plan.file.directives.get('check')?.value ?? ''));
}

/** Checks a file before its first step. Images that are not here are not fetched: their variables count as known. */
export async function checkFile(
  engine: Engine,
  { plan, input, options, signal }: File,
  linter: Linter,
  how: Readonly<{ allStages: boolean }>,
): Promise<Target> {
  const excluded = linter.counts(RULES.copyIgnoredFile) ? await input.excluded() : [];
  const work = evaluateInSteps({
    file: plan.file,
    plan,
    linter,
    given: options.args,
    automatic: options.automaticArgs,
    target: options.target,
    allStages: how.allStages,
    configOf: (name) => configOf(engine, name, options),
    isIgnored: excluded.length === 0 ? undefined : ignoredBy(excluded),
  });
  return await runInSlices(work, signal);
}

function ignoredBy(excluded: readonly string[]): (path: string) => boolean {
  const patterns = patternsOf(excluded);
  const length = excluded.reduce((sum, pattern) => sum + pattern.length, 0);
  let left = MAX_MATCHED;
  return (path) => {
    left -= path.length * length;
    return left >= 0 && ignores(patterns, path.replace(/^\/+|^\.\//, ''));
  };
}

function configOf({ images }: Engine, name: string, { platform }: BuildOptions): RunConfig | undefined {
  try {
    return runConfigOf(images.find(name, platform).wireConfig);
  } catch (error) {
    if (error instanceof EngineError) return undefined; // the step itself will say why
    throw error;
  }
}

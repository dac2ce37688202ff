import type { BuildOptions } from '../../builder/options.ts';
import { LocatedError } from '../../buildfile/located-error.ts';
import type { Plan } from '../../buildfile/stages.ts';
import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { checkFile, linterOf } from './checks/check-file.ts';
import { lintResult } from './checks/lint-result.ts';
import { outlineResult, resultOf } from './checks/outline.ts';
import { targetsResult } from './checks/targets.ts';
import { textOf } from './errors.ts';
import type { Input, Request } from './input.ts';

export type Answer = ReadonlyMap<string, Buffer>;

type File = Readonly<{
  plan: () => Promise<Plan>;
  input: Input;
  options: BuildOptions;
  attributes: Request['attributes'];
  signal: AbortSignal;
}>;

const NAMES: readonly string[] = ['frontend.lint', 'frontend.outline', 'frontend.targets'];

/** Answers a question about a file instead of building it: `docker build --call`. Throws `notImplemented`. */
export async function answerRequest(engine: Engine, id: string, file: File): Promise<Answer> {
  const { plan, input } = file;
  switch (id) {
    case 'frontend.lint':
      return await lint(engine, file);
    case 'frontend.outline': {
      const known = { ...file, plan: await plan() };
      return outlineResult(await checkFile(engine, known, linterOf(known), { allStages: false }), input.text);
    }
    case 'frontend.targets': {
      const known = await plan();
      return targetsResult(known, known.file.lines, input.text);
    }
    case 'frontend.subrequests.describe':
      return resultOf(
        NAMES.map((name) => ({ name, version: '1.0.0', type: 'rpc' })),
        `${NAMES.join('\n')}\n`,
      );
    default:
      throw new EngineError('notImplemented', `unsupported request ${id}`);
  }
}

/** A mistake of the file is a part of the answer. */
async function lint(engine: Engine, file: File): Promise<Answer> {
  const { plan, input, options } = file;
  const source = { name: input.name, text: input.text };
  let warnings: Parameters<typeof lintResult>[0] = [];
  try {
    const known = { ...file, plan: await plan() };
    const linter = linterOf(known);
    ({ warnings } = linter);
    await checkFile(engine, known, linter, { allStages: options.target === '' });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const place = error instanceof LocatedError ? error : undefined;
    return lintResult(warnings, source, { message: textOf(error), place });
  }
  return lintResult(warnings, source, undefined);
}

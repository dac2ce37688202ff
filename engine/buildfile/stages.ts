import { runAtOnce } from '../lib/concurrency/slices.ts';
import { EngineError } from '../lib/errors.ts';
import type { Dialect } from './dialect.ts';
import type { Arg, From, Step } from './instruction.ts';
import { MAX_STAGES, refuseAbove } from './limits.ts';
import { LocatedError } from './located-error.ts';
import type { ParsedFile } from './parse.ts';
import { readInstruction } from './read-instruction.ts';

export type Stage = Readonly<{ from: From; steps: readonly Step[] }>;

/** A Buildfile with all instructions interpreted. */
export type Plan = Readonly<{
  /** Before the first FROM: for the FROM lines. */
  globalArgs: readonly Arg[];
  stages: readonly Stage[];
  escape: string;
  dialect: Dialect;
  warnings: readonly string[];
  file: ParsedFile;
}>;

/** Like `planInSteps`, at once. */
export function planOf(file: ParsedFile): Plan {
  return runAtOnce(planInSteps(file));
}

/** Reads all instructions before the first one is done, one a step. Throws `invalid`, with the line. */
export function* planInSteps(file: ParsedFile): Generator<void, Plan> {
  const { lines, escape, dialect, warnings } = file;
  const globalArgs: Arg[] = [];
  const stages: { from: From; steps: Step[] }[] = [];
  for (const line of lines) {
    yield;
    const instruction = inLine(line, () => readInstruction(line, dialect));
    const stage = stages.at(-1);
    if (instruction.kind === 'from') {
      refuseAbove(MAX_STAGES, stages.length + 1, 'the file', 'stages');
      stages.push({ from: instruction, steps: [] });
    } else if (stage !== undefined) stage.steps.push(instruction);
    else if (instruction.kind === 'arg') globalArgs.push(instruction);
    else throw new LocatedError(line, 'no build stage in current context');
  }
  return { globalArgs, stages, escape, dialect, warnings, file };
}

/** An instruction that cannot be read. */
export class InstructionError extends LocatedError {
  readonly reason: string;

  constructor(place: Readonly<{ number: number; end: number }>, cause: EngineError) {
    super(place, `dockerfile parse error line ${place.number}: ${cause.message}`, cause);
    this.reason = cause.message;
  }
}

function inLine<T>(place: Readonly<{ number: number; end: number }>, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new InstructionError(place, error);
  }
}

import { runAtOnce } from '../lib/concurrency/slices.ts';
import { EngineError } from '../lib/errors.ts';
import type { Arg, From, Step } from './instruction.ts';
import { MAX_STAGES, refuseAbove } from './limits.ts';
import type { ParsedFile } from './parse.ts';
import { readInstruction } from './read-instruction.ts';

export type Stage = Readonly<{ from: From; steps: readonly Step[] }>;

/** A Buildfile with all instructions interpreted. */
export type Plan = Readonly<{
  /** Before the first FROM: for the FROM lines. */
  globalArgs: readonly Arg[];
  stages: readonly Stage[];
  escape: string;
  warnings: readonly string[];
}>;

/** Like `planInSteps`, at once. */
export function planOf(file: ParsedFile): Plan {
  return runAtOnce(planInSteps(file));
}

/** Reads all instructions before the first one is done, one a step. Throws `invalid`, with the line. */
export function* planInSteps({ lines, escape, warnings }: ParsedFile): Generator<void, Plan> {
  const globalArgs: Arg[] = [];
  const stages: { from: From; steps: Step[] }[] = [];
  for (const line of lines) {
    yield;
    const instruction = inLine(line.number, () => readInstruction(line));
    const stage = stages.at(-1);
    if (instruction.kind === 'from') {
      refuseAbove(MAX_STAGES, stages.length + 1, 'the file', 'stages');
      stages.push({ from: instruction, steps: [] });
    } else if (stage !== undefined) stage.steps.push(instruction);
    else if (instruction.kind === 'arg') globalArgs.push(instruction);
    else throw new EngineError('invalid', 'no build stage in current context');
  }
  return { globalArgs, stages, escape, warnings };
}

/** An instruction that cannot be read. */
export class InstructionError extends EngineError {
  /** Its first line, from 1. */
  readonly number: number;
  readonly reason: string;

  constructor(number: number, reason: string) {
    super('invalid', `dockerfile parse error line ${number}: ${reason}`);
    this.number = number;
    this.reason = reason;
  }
}

function inLine<T>(number: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new InstructionError(number, error.message);
  }
}

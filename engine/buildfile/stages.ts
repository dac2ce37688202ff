import { EngineError } from '../lib/errors.ts';
import type { Arg, From, Step } from './instruction.ts';
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

/** Reads all instructions before the first step. Throws `invalid`, with the line. */
export function planOf({ lines, escape, warnings }: ParsedFile): Plan {
  const globalArgs: Arg[] = [];
  const stages: { from: From; steps: Step[] }[] = [];
  for (const line of lines) {
    const instruction = inLine(line.number, () => readInstruction(line));
    const stage = stages.at(-1);
    if (instruction.kind === 'from') stages.push({ from: instruction, steps: [] });
    else if (stage !== undefined) stage.steps.push(instruction);
    else if (instruction.kind === 'arg') globalArgs.push(instruction);
    else throw new EngineError('invalid', 'no build stage in current context');
  }
  return { globalArgs, stages, escape, warnings };
}

function inLine<T>(number: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('invalid', `dockerfile parse error line ${number}: ${error.message}`);
  }
}

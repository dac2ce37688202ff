import { expandWord, type Variables } from '../buildfile/expansion/expand.ts';
import type { Instruction, Run } from '../buildfile/instruction.ts';
import { parseReference, withDefaultTag } from '../images/names/reference.ts';
import { EngineError } from '../lib/errors.ts';

type How = Readonly<{ variables: Variables; escape: string }>;

/** An instruction as BuildKit shows it: its keyword in capitals, the variables that are known expanded. */
export function shownCode(instruction: Instruction, code: string, how: How): string {
  const shown = code.replace(/^\S+/, (word) => word.toUpperCase());
  if (instruction.kind !== 'run') return expandedOrNot(shown, how);
  return `${withKnown(shown, how.variables)}${summary(instruction)}`;
}

/** A base image by its whole name. */
export function shownBase(name: string): string {
  try {
    const { repository, tag } = withDefaultTag(parseReference(name));
    return `FROM ${tag === undefined ? name : `${repository}:${tag}`}`;
  } catch (error) {
    if (error instanceof EngineError) return `FROM ${name}`;
    throw error;
  }
}

function expandedOrNot(code: string, { variables, escape }: How): string {
  try {
    return expandWord(code, variables, escape);
  } catch (error) {
    if (error instanceof EngineError) return code;
    throw error;
  }
}

/** In a command, quotes and the variables of its shell stay. */
function withKnown(code: string, variables: Variables): string {
  return code.replaceAll(/'[^']*'|\\[$"\\]|\$(\w+)|\$\{(\w+)\}/g, (whole, plain?: string, braced?: string) => {
    if (whole.startsWith('\\')) return whole.slice(1);
    const name = plain ?? braced;
    return name === undefined ? whole : (variables.get(name) ?? whole);
  });
}

/** The first line of a script that is the whole command. */
function summary({ command, heredocs }: Run): string {
  const [first] = heredocs;
  if (first === undefined || command.words[0]?.trim() !== first.word) return '';
  const [line = '', ...more] = first.written.trim().split('\n');
  return ` (${line}${more.length > 0 ? '...' : ''})`;
}

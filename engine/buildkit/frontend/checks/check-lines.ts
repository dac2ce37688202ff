import type { Line, ParsedFile } from '../../../buildfile/parse.ts';
import type { Linter } from './linter.ts';

const RESERVED: readonly string[] = ['context', 'scratch'];

/** Checks the instructions one by one, and their names and keywords together. */
export function checkLines({ lines, emptyContinuations }: ParsedFile, linter: Linter): void {
  for (const number of emptyContinuations) {
    linter.warn('noEmptyContinuation', { number, end: number }, 'Empty continuation line');
  }
  for (const line of lines) checkLine(line, linter);
  checkStageNames(lines, linter);
  checkKeywords(lines, linter);
}

function checkLine(line: Line, linter: Linter): void {
  const { keyword, word, args } = line;
  if (keyword === 'maintainer') {
    linter.warn('maintainerDeprecated', line, 'Maintainer instruction is deprecated in favor of using label');
  }
  if (keyword === 'from' && args.length === 3) {
    const [, as = '', name = ''] = args;
    if (name !== name.toLowerCase()) {
      linter.warn('stageNameCasing', line, `Stage name '${name}' should be lowercase`);
    }
    if (isConsistent(word) && as !== (isLower(word) ? as.toLowerCase() : as.toUpperCase())) {
      linter.warn('fromAsCasing', line, `'${as}' and '${word}' keywords' casing do not match`);
    }
    checkDescription('FROM', [name.toLowerCase()], line, linter);
  }
  if (keyword === 'arg') {
    checkDescription(
      'ARG',
      args.map((arg) => arg.split('=', 1)[0]!),
      line,
      linter,
    );
  }
}

function checkDescription(instruction: string, names: readonly string[], line: Line, linter: Linter): void {
  const comment = line.comments.at(-1);
  if (comment === undefined || names.length === 0 || names.includes(comment.split(' ', 1)[0]!)) return;
  const example = names.length > 1 ? '<arg_key>' : names[0]!;
  linter.warn(
    'invalidDefinitionDescription',
    line,
    `Comment for ${instruction} should follow the format: \`# ${example} <description>\``,
  );
}

function checkStageNames(lines: readonly Line[], linter: Linter): void {
  const names = new Set<string>();
  for (const line of lines) {
    if (line.keyword !== 'from' || line.args.length !== 3) continue;
    const name = line.args[2]!.toLowerCase();
    if (RESERVED.includes(name)) {
      linter.warn('reservedStageName', line, `Stage name should not use the same name as reserved stage "${name}"`);
    }
    if (names.has(name)) {
      linter.warn('duplicateStageName', line, `Duplicate stage name "${name}", stage names should be unique`);
    }
    names.add(name);
  }
}

/** Instructions in front of the first FROM do not count. */
function checkKeywords(lines: readonly Line[], linter: Linter): void {
  const counted = lines.slice(lines.findIndex(({ keyword }) => keyword === 'from'));
  const consistent = counted.filter(({ word }) => isConsistent(word));
  const lower = consistent.filter(({ word }) => isLower(word)).length;
  const isMostlyLower = lower > consistent.length - lower;
  for (const line of counted) {
    const wanted = isMostlyLower ? line.word.toLowerCase() : line.word.toUpperCase();
    if (line.word === wanted) continue;
    const casing = isMostlyLower ? 'lowercase' : 'uppercase';
    linter.warn(
      'consistentInstructionCasing',
      line,
      `Command '${line.word}' should match the case of the command majority (${casing})`,
    );
  }
}

function isConsistent(word: string): boolean {
  return isLower(word) || word === word.toUpperCase();
}

function isLower(word: string): boolean {
  return word === word.toLowerCase();
}

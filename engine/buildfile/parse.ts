import { runAtOnce } from '../lib/concurrency/slices.ts';
import { EngineError } from '../lib/errors.ts';
import type { Dialect } from './dialect.ts';
import { MAX_INSTRUCTION_LENGTH, MAX_INSTRUCTIONS, refuseAbove } from './limits.ts';
import { Directives, type Directive } from './lines/directives.ts';
import { heredocsIn, readHeredocs, type Heredoc } from './lines/heredocs.ts';
import { jsonWords } from './lines/json-words.ts';
import { SourceLines } from './lines/source-lines.ts';
import { splitAtBlanks, splitAtFirstBlank, splitCommand, splitWords } from './lines/words.ts';
import { LocatedError } from './located-error.ts';

/** An instruction as written, not yet interpreted. */
export type Line = Readonly<{
  /** In lower case. */
  keyword: string;
  /** The keyword as written. */
  word: string;
  flags: readonly string[];
  args: readonly string[];
  /** Its arguments are a JSON list. */
  isJson: boolean;
  heredocs: readonly Heredoc[];
  /** The whole instruction, its lines joined. */
  original: string;
  /** Numbers of its first and last line, from 1. */
  number: number;
  end: number;
  /** ENV or LABEL in the old form, `NAME the rest`. */
  isOldPair: boolean;
  /** The comment lines in front of it, up to an empty comment. */
  comments: readonly string[];
}>;

export type ParsedFile = Readonly<{
  lines: readonly Line[];
  dialect: Dialect;
  directives: ReadonlyMap<string, Directive>;
  /** Numbers of the last lines of instructions that continue over an empty line. */
  emptyContinuations: readonly number[];
  /** The character that escapes, and continues a line. */
  escape: string;
  warnings: readonly string[];
}>;

/** The instructions, in capitals. */
export const KEYWORDS: readonly string[] = [
  ...[
    'ADD',
    'ARG',
    'CMD',
    'COPY',
    'ENTRYPOINT',
    'ENV',
    'EXPOSE',
    'FROM',
    'HEALTHCHECK',
    'LABEL',
    'MAINTAINER',
    'ONBUILD',
  ],
  ...['RUN', 'SHELL', 'STOPSIGNAL', 'USER', 'VOLUME', 'WORKDIR'],
];

/** Like `parseInSteps`, at once: for short files. */
export function parseFile(text: string, dialect?: Dialect): ParsedFile {
  return runAtOnce(parseInSteps(text, dialect));
}

/**
 * Splits a Buildfile into its instructions, one a step. They are not interpreted, and an unknown one is not an error yet.
 *
 * Throws `invalid`.
 */
export function* parseInSteps(text: string, dialect: Dialect = 'classic'): Generator<void, ParsedFile> {
  const directives = new Directives(dialect);
  const lines: Line[] = [];
  const warnings: string[] = [];
  const emptyContinuations: number[] = [];
  const source = new SourceLines(text);
  let comments: string[] = []; // not copied for each comment: there may be 100,000
  for (;;) {
    yield;
    const first = source.next();
    if (first === undefined) break;
    const start = source.number;
    const located = <T>(work: () => T): T => (dialect === 'classic' ? work() : inLines(start, source, work));
    const isDirective = located(() => directives.look(first.trimStart(), start));
    if (first.trimStart().startsWith('#') && !isDirective) addComment(comments, first);
    const whole = joinLines(first, source, directives);
    if (whole.text === '') continue;
    if (whole.hasEmptyLine) {
      warnings.push(`[WARNING]: Empty continuation line found in:\n    ${whole.text}`);
      emptyContinuations.push(source.number);
    }
    refuseAbove(MAX_INSTRUCTIONS, lines.length + 1, 'the file', 'instructions');
    const line = located(() =>
      withHeredocs(parseLine(whole.text, directives.escape, start), source, { escape: directives.escape, dialect }),
    );
    lines.push({ ...line, end: source.number, comments });
    comments = [];
  }
  if (lines.length === 0) {
    throw new LocatedError({ number: source.number, end: source.number }, 'file with no instructions');
  }
  if (warnings.length > 0) {
    warnings.push('[WARNING]: Empty continuation lines will become errors in a future release.');
  }
  const { escape, found } = directives;
  return { lines, dialect, directives: found, emptyContinuations, escape, warnings };
}

function inLines<T>(start: number, source: SourceLines, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new LocatedError({ number: start, end: source.number }, error.message, error);
  }
}

/** An empty comment separates those in front of it from the instruction. */
function addComment(comments: string[], line: string): void {
  const text = line.trimStart().slice(1).trim();
  if (text === '') comments.length = 0;
  else comments.push(text);
}

/** Reads one instruction, such as a trigger of ONBUILD. */
export function parseLine(text: string, escape: string, number: number): Line {
  const { keyword, word, flags, rest } = splitCommand(text);
  return {
    keyword,
    word,
    flags,
    original: text,
    number,
    end: number,
    heredocs: [],
    isJson: false,
    isOldPair: false,
    comments: [],
    ...argumentsOf(keyword, rest, escape),
  };
}

/** A line with its continuations. Comments between them are skipped, and empty lines, with docker's warning. */
function joinLines(
  first: string,
  source: SourceLines,
  directives: Directives,
): { text: string; hasEmptyLine: boolean } {
  let { text, isContinued } = directives.continued(withoutComment(first.trimStart()));
  if (!isContinued && text === '') return { text, hasEmptyLine: false };
  const start = source.number;
  let hasEmptyLine = false;
  while (isContinued) {
    const next = source.next();
    if (next === undefined) break;
    if (next.trimStart().startsWith('#')) continue;
    if (next.trim() === '') {
      hasEmptyLine = true;
      continue;
    }
    const more = directives.continued(next);
    text += more.text;
    refuseAbove(MAX_INSTRUCTION_LENGTH, text.length, `the instruction of line ${start}`, 'characters');
    isContinued = more.isContinued;
  }
  return { text, hasEmptyLine };
}

function withoutComment(line: string): string {
  return line.startsWith('#') ? '' : line;
}

/**
 * In front of commands, `<<` may be the shell's: a shift, or a here-document that continues its line. BuildKit reads a
 * here-document in any case.
 */
function withHeredocs(
  line: Line,
  source: SourceLines,
  { escape, dialect }: Readonly<{ escape: string; dialect: Dialect }>,
): Line {
  const asked = line.isJson ? [] : heredocsIn(line, escape, dialect);
  const [first] = asked;
  const mayBeShell = dialect === 'classic' && line.keyword === 'run';
  if (first === undefined || (mayBeShell && !source.has(first.name, first.cutsTabs))) return line;
  return { ...line, heredocs: readHeredocs(asked, source, line, dialect) };
}

type Arguments = Pick<Line, 'args'> & Partial<Line>;

/** Each keyword has its own way to write arguments. */
function argumentsOf(keyword: string, rest: string, escape: string): Arguments {
  switch (keyword) {
    case 'env':
    case 'label':
      return namesAndValues(keyword.toUpperCase(), rest, escape);
    case 'arg':
      return { args: splitWords(rest, escape) };
    case 'expose':
    case 'from':
      return { args: splitAtBlanks(rest) };
    case 'add':
    case 'copy':
    case 'volume':
      return jsonOr(rest, splitAtBlanks(rest));
    case 'cmd':
    case 'entrypoint':
    case 'run':
    case 'shell':
      return jsonOr(rest, rest === '' ? [] : [rest]);
    case 'healthcheck':
      return healthcheckArguments(rest);
    case 'maintainer':
    case 'stopsignal':
    case 'user':
    case 'workdir':
      return { args: rest === '' ? [] : [rest] };
    case 'onbuild':
      return triggerArguments(rest, escape);
    default:
      return { args: [] };
  }
}

function jsonOr(rest: string, words: readonly string[]): Arguments {
  const list = jsonWords(rest);
  return list === undefined ? { args: words } : { args: list, isJson: true };
}

/** `A=b C=d`, or, in the old form, `A the rest of the line`: names and values in turn. */
function namesAndValues(keyword: string, rest: string, escape: string): Arguments {
  const words = splitWords(rest, escape);
  if (words.length === 0) return { args: [] };
  if (!words[0]!.includes('=')) {
    const parts = splitAtFirstBlank(rest);
    if (parts === undefined) throw new EngineError('invalid', `${keyword} must have two arguments`);
    return { args: parts, isOldPair: true };
  }
  const args = words.flatMap((word) => {
    const equals = word.indexOf('=');
    if (equals >= 0) return [word.slice(0, equals), word.slice(equals + 1)];
    const shown = JSON.stringify(word);
    throw new EngineError('invalid', `Syntax error - can't find = in ${shown}. Must be of the form: name=value`);
  });
  return { args };
}

function healthcheckArguments(rest: string): Arguments {
  const [, kind = '', command = ''] = /^(\S*)\s*([^]*)$/u.exec(rest) ?? [];
  if (kind === '') return { args: [] };
  const { args, ...json } = jsonOr(command, command === '' ? [] : [command]);
  return { args: [kind, ...args], ...json };
}

function triggerArguments(rest: string, escape: string): Arguments {
  if (rest === '') return { args: [] };
  if (splitCommand(rest).keyword === 'onbuild') return { args: ['onbuild'] }; // refused, however many follow
  const { keyword, args } = parseLine(rest, escape, 0);
  return { args: [keyword, ...args] };
}

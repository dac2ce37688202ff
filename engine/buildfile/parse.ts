import { runAtOnce } from '../lib/concurrency/slices.ts';
import { EngineError } from '../lib/errors.ts';
import { Directives } from './directives.ts';
import { heredocsIn, readHeredocs, withoutTabs, type FollowingLines, type Heredoc } from './heredocs.ts';
import { jsonWords } from './json-words.ts';
import { MAX_FILE_BYTES, MAX_INSTRUCTION_LENGTH, MAX_INSTRUCTIONS, MAX_LINES, refuseAbove } from './limits.ts';
import { splitAtBlanks, splitAtFirstBlank, splitCommand, splitWords } from './words.ts';

/** An instruction as written, not yet interpreted. */
export type Line = Readonly<{
  /** In lower case. */
  keyword: string;
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
}>;

export type ParsedFile = Readonly<{
  lines: readonly Line[];
  /** The character that escapes, and continues a line. */
  escape: string;
  warnings: readonly string[];
}>;

/** As in docker, in bytes. */
const MAX_LINE_LENGTH = 65_535;

/** Like `parseInSteps`, at once: for short files. */
export function parseFile(text: string): ParsedFile {
  return runAtOnce(parseInSteps(text));
}

/**
 * Splits a Buildfile into its instructions, one a step. They are not interpreted, and an unknown one is not an error yet.
 *
 * Throws `invalid`.
 */
export function* parseInSteps(text: string): Generator<void, ParsedFile> {
  const directives = new Directives();
  const lines: Line[] = [];
  const warnings: string[] = [];
  const source = new SourceLines(text);
  for (;;) {
    yield;
    const first = source.next();
    if (first === undefined) break;
    const start = source.number;
    directives.look(first.trimStart());
    const whole = joinLines(first, source, directives);
    if (whole.text === '') continue;
    if (whole.hasEmptyLine) warnings.push(`[WARNING]: Empty continuation line found in:\n    ${whole.text}`);
    refuseAbove(MAX_INSTRUCTIONS, lines.length + 1, 'the file', 'instructions');
    const line = withHeredocs(parseLine(whole.text, directives.escape, start), source, directives.escape);
    lines.push({ ...line, end: source.number });
  }
  if (lines.length === 0) throw new EngineError('invalid', 'file with no instructions');
  if (warnings.length > 0) {
    warnings.push('[WARNING]: Empty continuation lines will become errors in a future release.');
  }
  return { lines, escape: directives.escape, warnings };
}

/** Reads one instruction, such as a trigger of ONBUILD. */
export function parseLine(text: string, escape: string, number: number): Line {
  const { keyword, flags, rest } = splitCommand(text);
  return {
    keyword,
    flags,
    original: text,
    number,
    end: number,
    heredocs: [],
    isJson: false,
    ...argumentsOf(keyword, rest, escape),
  };
}

class SourceLines implements FollowingLines {
  readonly #lines: readonly string[];
  /** The last number of each line, with and without its tabs in front; made for the first here-document. */
  readonly #last: { whole?: ReadonlyMap<string, number>; cut?: ReadonlyMap<string, number> } = {};
  number = 0;

  constructor(text: string) {
    const whole = text.startsWith('\ufeff') ? text.slice(1) : text;
    if (whole.includes('\0')) throw new EngineError('invalid', 'the file has a NUL character: it is no text in UTF-8');
    refuseAbove(MAX_FILE_BYTES, Buffer.byteLength(whole), 'the file', 'bytes');
    const lines = whole.split('\n');
    refuseAbove(MAX_LINES, lines.length - 1, 'the file', 'lines');
    if (lines.at(-1) === '') lines.pop();
    this.#lines = lines;
  }

  /** Without a carriage return at its end. */
  next(): string | undefined {
    const line = this.#lines[this.number];
    if (line === undefined) return undefined;
    this.number += 1;
    if (Buffer.byteLength(line) > MAX_LINE_LENGTH) {
      throw new EngineError('invalid', `dockerfile line greater than max allowed size of ${MAX_LINE_LENGTH}`);
    }
    return withoutReturn(line);
  }

  has(text: string, cutsTabs: boolean): boolean {
    const last = cutsTabs
      ? (this.#last.cut ??= lastNumbers(this.#lines.map(withoutTabs)))
      : (this.#last.whole ??= lastNumbers(this.#lines));
    return (last.get(text) ?? 0) > this.number;
  }
}

function lastNumbers(lines: readonly string[]): Map<string, number> {
  return new Map(lines.map((line, index) => [withoutReturn(line), index + 1]));
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
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

/** In front of commands, `<<` may be the shell's: a shift, or a here-document that continues its line. */
function withHeredocs(line: Line, source: SourceLines, escape: string): Line {
  const asked = line.isJson ? [] : heredocsIn(line, escape);
  const [first] = asked;
  if (first === undefined || (line.keyword === 'run' && !source.has(first.name, first.cutsTabs))) return line;
  return { ...line, heredocs: readHeredocs(asked, source, line) };
}

type Arguments = Pick<Line, 'args'> & Partial<Line>;

/** Each keyword has its own way to write arguments. */
function argumentsOf(keyword: string, rest: string, escape: string): Arguments {
  switch (keyword) {
    case 'env':
    case 'label':
      return { args: namesAndValues(keyword.toUpperCase(), rest, escape) };
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
function namesAndValues(keyword: string, rest: string, escape: string): string[] {
  const words = splitWords(rest, escape);
  if (words.length === 0) return [];
  if (!words[0]!.includes('=')) {
    const parts = splitAtFirstBlank(rest);
    if (parts === undefined) throw new EngineError('invalid', `${keyword} must have two arguments`);
    return parts;
  }
  return words.flatMap((word) => {
    const equals = word.indexOf('=');
    if (equals >= 0) return [word.slice(0, equals), word.slice(equals + 1)];
    const shown = JSON.stringify(word);
    throw new EngineError('invalid', `Syntax error - can't find = in ${shown}. Must be of the form: name=value`);
  });
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

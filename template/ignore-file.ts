import { posix } from 'node:path';

/** A pattern of an ignore file that is none. The message is dockerd's. */
export class PatternError extends Error {
  override name = 'PatternError';
}

/** One step of a pattern, for one sign of a path. */
type Step =
  | { kind: 'sign'; sign: string }
  | { kind: 'class'; ranges: readonly (readonly [number, number])[]; isNegated: boolean }
  /** `?`: one sign that is no `/`. */
  | { kind: 'one' }
  /** `*`: any number of signs that are no `/`. */
  | { kind: 'some' }
  /** `**` at the end: all that follows. */
  | { kind: 'rest' }
  /** `**` elsewhere: folders that may be missing. */
  | { kind: 'folders' };

/** A line of an ignore file; `depth` is the number of its parts. */
export type IgnorePattern = Readonly<{ steps: readonly Step[]; depth: number; isException: boolean }>;

const MAX_PATTERN = 256;
/** One that is longer is like no pattern. */
const MAX_PATH_LENGTH = 4096;

/** Reads an ignore file: `*`, `?`, classes, `**` over folders, `!` for exceptions, `#` for comments. Throws `PatternError`. */
export function ignorePatterns(text: string): IgnorePattern[] {
  return text
    .replace(/^\ufeff/, '')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .flatMap(patternOf);
}

/** Whether a path is excluded: the last pattern that matches it or a folder above it counts. */
export function ignores(patterns: readonly IgnorePattern[], path: string): boolean {
  const folders = path.split('/').slice(0, -1);
  let isIgnored = false;
  for (const { steps, depth, isException } of patterns) {
    if (isException !== isIgnored) continue;
    if (matches(steps, path) || isAnyAbove(steps, folders, depth)) isIgnored = !isException;
  }
  return isIgnored;
}

function isAnyAbove(steps: readonly Step[], folders: readonly string[], depth: number): boolean {
  return folders.length > 0 && depth <= folders.length && matches(steps, folders.slice(0, depth).join('/'));
}

function patternOf(line: string): IgnorePattern[] {
  const isException = line.startsWith('!');
  const written = isException ? line.slice(1).trim() : line;
  if (written === '') throw new PatternError('illegal exclusion pattern: "!"');
  if (written.length > MAX_PATTERN) throw new PatternError(`the pattern has more than ${MAX_PATTERN} characters`);
  const path = posix
    .normalize(written)
    .replace(/(.)\/$/, '$1')
    .replace(/^\/(?=.)/, '');
  if (path === '.') return []; // the context itself
  return [{ steps: stepsOf(path, written), depth: path.split('/').length, isException }];
}

function stepsOf(path: string, written: string): Step[] {
  const signs = Array.from(path);
  const steps: Step[] = [];
  for (let at = 0; at < signs.length; at += 1) {
    const sign = signs[at]!;
    if (sign === '*' && signs[at + 1] === '*') {
      at += signs[at + 2] === '/' ? 2 : 1;
      if (at + 1 >= signs.length) steps.push({ kind: 'rest' });
      else steps.push({ kind: 'folders' });
    } else if (sign === '*') steps.push({ kind: 'some' });
    else if (sign === '?') steps.push({ kind: 'one' });
    else if (sign === '[') {
      const { end, step } = classAt(signs, at, written);
      steps.push(step);
      at = end;
    } else if (sign === '\\') {
      at += 1;
      steps.push({ kind: 'sign', sign: signs[at] ?? '\\' });
    } else steps.push({ kind: 'sign', sign });
  }
  return steps;
}

/** The signs between brackets, of which the first may be a bracket itself. */
function classAt(signs: readonly string[], start: number, written: string): { end: number; step: Step } {
  const broken = (): never => {
    throw new PatternError(`syntax error in pattern: ${written}`);
  };
  const isNegated = signs[start + 1] === '^';
  const first = start + (isNegated ? 2 : 1);
  const ranges: [number, number][] = [];
  let at = first;
  const next = (): number => {
    if (signs[at] === '\\') at += 1;
    const code = signs[at]?.codePointAt(0) ?? broken();
    at += 1;
    return code;
  };
  while (at < signs.length && (signs[at] !== ']' || at === first)) {
    const low = next();
    const isRange = signs[at] === '-' && signs[at + 1] !== ']';
    if (isRange) at += 1;
    const high = isRange ? next() : low;
    if (high < low) broken();
    ranges.push([low, high]);
  }
  if (at >= signs.length) broken();
  return { end: at, step: { kind: 'class', ranges, isNegated } };
}

/**
 * Whether a pattern from one of its steps on is like a path from one of its signs on. `failed` are the places, for each `*`
 * and `**`, from which on nothing has fitted: no place is tried twice, so the time is at most that of their product.
 */
function matchesFrom(
  steps: readonly Step[],
  signs: ArrayLike<string>,
  from: number,
  start: number,
  failed: Set<number>,
): boolean {
  let at = start;
  for (let index = from; index < steps.length; index += 1) {
    const step = steps[index]!;
    if (step.kind === 'rest') return true;
    if (step.kind === 'some' || step.kind === 'folders') {
      for (const end of ends(step, signs, at)) {
        const place = index * (signs.length + 1) + end;
        if (failed.has(place)) return false;
        if (matchesFrom(steps, signs, index + 1, end, failed)) return true;
        failed.add(place);
      }
      return false;
    }
    if (at === signs.length || !isLike(step, signs[at]!)) return false;
    at += 1;
  }
  return at === signs.length;
}

/** Where what a `*` or `**` stands for may end. */
function* ends({ kind }: Step, signs: ArrayLike<string>, start: number): Generator<number> {
  yield start;
  for (let at = start; at < signs.length; at += 1) {
    if (kind === 'some' && signs[at] === '/') return;
    if (kind === 'some' || signs[at] === '/') yield at + 1;
  }
}

function isLike(step: Step, sign: string): boolean {
  if (step.kind === 'sign') return step.sign === sign;
  if (step.kind === 'one') return sign !== '/';
  if (step.kind !== 'class') return false;
  const code = sign.codePointAt(0)!;
  return step.ranges.some(([low, high]) => low <= code && code <= high) !== step.isNegated;
}

function matches(steps: readonly Step[], path: string): boolean {
  if (path.length > MAX_PATH_LENGTH) return false;
  const signs = /[\ud800-\udfff]/.test(path) ? Array.from(path) : path;
  return matchesFrom(steps, signs, 0, 0, new Set());
}

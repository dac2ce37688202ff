import { posix } from 'node:path';

import { Glob, parseClass, PatternError, refuseLong, type Step } from './glob.ts';

/** A line of an ignore file; `depth` is the number of its parts. */
export type IgnorePattern = Readonly<{ glob: Glob; depth: number; isException: boolean }>;

const MAX_PATTERNS = 10_000;
/** One that is longer is like no pattern. */
export const MAX_PATH_LENGTH = 4096;

/** Reads an ignore file: `*`, `?`, classes, `**` over folders, `!` for exceptions, `#` for comments. Throws `PatternError`. */
export function ignorePatterns(text: string): IgnorePattern[] {
  const lines = text
    .replace(/^\ufeff/, '')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (lines.length > MAX_PATTERNS) throw new PatternError(`the ignore file has more than ${MAX_PATTERNS} patterns`);
  return lines.flatMap(patternOf);
}

/** Reads patterns one by one, such as those of flags. Throws `PatternError`. */
export function patternsOf(written: readonly string[]): IgnorePattern[] {
  return written
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .flatMap(patternOf);
}

/** Whether a path is excluded: the last pattern that matches it or a folder above it counts. */
export function ignores(patterns: readonly IgnorePattern[], path: string): boolean {
  const folders = path.split('/').slice(0, -1);
  let isIgnored = false;
  for (const { glob, depth, isException } of patterns) {
    if (isException !== isIgnored) continue;
    if (matches(glob, path) || isAnyAbove(glob, folders, depth)) isIgnored = !isException;
  }
  return isIgnored;
}

function isAnyAbove(glob: Glob, folders: readonly string[], depth: number): boolean {
  return folders.length > 0 && depth <= folders.length && matches(glob, folders.slice(0, depth).join('/'));
}

function patternOf(line: string): IgnorePattern[] {
  const isException = line.startsWith('!');
  const written = isException ? line.slice(1).trim() : line;
  if (written === '') throw new PatternError('illegal exclusion pattern: "!"');
  refuseLong(written);
  const path = posix
    .normalize(written)
    .replace(/(.)\/$/, '$1')
    .replace(/^\/(?=.)/, '');
  if (path === '.') return []; // the context itself
  return [{ glob: new Glob(stepsOf(path, written)), depth: path.split('/').length, isException }];
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
      const { end, step } = parseClass(signs, at, written, { bracketMayBeFirst: true });
      steps.push(step);
      at = end;
    } else if (sign === '\\') {
      at += 1;
      steps.push({ kind: 'sign', sign: signs[at] ?? '\\' });
    } else steps.push({ kind: 'sign', sign });
  }
  return steps;
}

function matches(glob: Glob, path: string): boolean {
  return path.length <= MAX_PATH_LENGTH && glob.matches(path);
}

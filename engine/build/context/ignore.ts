import { posix } from 'node:path';

import { EngineError } from '../../lib/errors.ts';
import { parsePattern, type Pattern } from '../../lib/notations/pattern.ts';

/** A line of an ignore file. */
export type IgnorePattern = Readonly<{ matches: Pattern; depth: number; isException: boolean }>;

/** Reads an ignore file: `*`, `?`, classes, `**` over folders, `!` for exceptions, `#` for comments. Throws `invalid`. */
export function ignorePatterns(text: string): IgnorePattern[] {
  return text
    .replace(/^\ufeff/, '')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map(patternOf)
    .filter((pattern) => pattern !== undefined);
}

/** Whether a path is excluded: the last pattern that matches it or a folder above it counts. */
export function ignores(patterns: readonly IgnorePattern[], path: string): boolean {
  const folders = path.split('/').slice(0, -1);
  let isIgnored = false;
  for (const { matches, depth, isException } of patterns) {
    if (isException !== isIgnored) continue;
    if (matches(path) || isAnyAbove(matches, folders, depth)) isIgnored = !isException;
  }
  return isIgnored;
}

function isAnyAbove(matches: Pattern, folders: readonly string[], depth: number): boolean {
  return folders.length > 0 && depth <= folders.length && matches(folders.slice(0, depth).join('/'));
}

function patternOf(line: string): IgnorePattern | undefined {
  const isException = line.startsWith('!');
  const written = isException ? line.slice(1).trim() : line;
  if (written === '') throw new EngineError('invalid', 'illegal exclusion pattern: "!"');
  const path = posix
    .normalize(written)
    .replace(/(.)\/$/, '$1')
    .replace(/^\/(?=.)/, '');
  if (path === '.') return undefined; // the context itself
  const matches = parsePattern(`(?s)${regexOf(path)}`);
  if (matches === undefined) throw new EngineError('invalid', `syntax error in pattern: ${written}`);
  return { matches, depth: path.split('/').length, isException };
}

/** As docker translates a pattern: brackets are copied unchanged. */
function regexOf(path: string): string {
  let regex = '^';
  for (let at = 0; at < path.length; at += 1) {
    const sign = path[at]!;
    if (sign === '*' && path[at + 1] === '*') {
      at += path[at + 2] === '/' ? 2 : 1;
      regex += at + 1 >= path.length ? '.*' : '(.*/)?';
    } else if (sign === '*') regex += '[^/]*';
    else if (sign === '?') regex += '[^/]';
    else if ('.$+(){}|^'.includes(sign) && !isInClass(path, at)) regex += `\\${sign}`;
    else if (sign === '\\') {
      at += 1;
      regex += at < path.length ? `\\${path[at]}` : '\\\\';
    } else regex += sign;
  }
  return `${regex}$`;
}

function isInClass(path: string, at: number): boolean {
  const open = path.lastIndexOf('[', at);
  return open >= 0 && path.indexOf(']', open + 2) > at;
}

import { EngineError } from '../../lib/errors.ts';
import { parsePattern, type Pattern } from '../../lib/notations/pattern.ts';

/** Compiled ones are kept for the walk over a tree. */
let last: { written: string; matches: Pattern } | undefined;

/**
 * Whether a whole path matches a pattern of Go's filepath.Match: `*` and `?` never match a slash, `[a-c]` is a class.
 * Throws `invalid` for a malformed one.
 */
export function pathMatches(pattern: string, path: string): boolean {
  if (last?.written !== pattern) {
    const matches = parsePattern(`(?s)^${regexOf(pattern)}$`);
    if (matches === undefined) throw broken(pattern);
    last = { written: pattern, matches };
  }
  return last.matches(path);
}

function regexOf(pattern: string): string {
  let regex = '';
  const signs = Array.from(pattern);
  for (let at = 0; at < signs.length; at += 1) {
    const sign = signs[at]!;
    if (sign === '*') {
      while (signs[at + 1] === '*') at += 1;
      regex += '[^/]*';
    } else if (sign === '?') regex += '[^/]';
    else if (sign === '\\') {
      at += 1;
      if (signs[at] === undefined) throw broken(pattern);
      regex += literal(signs[at]!);
    } else if (sign === '[') {
      const end = endOfClass(signs, at);
      if (end === undefined) throw broken(pattern);
      regex += classOf(signs.slice(at + 1, end));
      at = end;
    } else regex += literal(sign);
  }
  return regex;
}

function endOfClass(signs: readonly string[], start: number): number | undefined {
  for (let at = start + 1; at < signs.length; at += 1) {
    if (signs[at] === '\\') at += 1;
    else if (signs[at] === ']' && at > start + 1 && !(at === start + 2 && signs[start + 1] === '^')) return at;
  }
  return undefined;
}

function classOf(signs: readonly string[]): string {
  const isNegated = signs[0] === '^';
  const rest = signs.slice(isNegated ? 1 : 0);
  let inner = '';
  for (let at = 0; at < rest.length; at += 1) {
    if (rest[at] === '-' && at > 0 && at + 1 < rest.length) inner += '-';
    else {
      if (rest[at] === '\\') at += 1;
      inner += literal(rest[at] ?? '\\');
    }
  }
  return `[${isNegated ? '^' : ''}${inner}]`;
}

function literal(sign: string): string {
  return /[\^$\\.*+?()[\]{}|/-]/.test(sign) ? `\\${sign}` : sign;
}

function broken(pattern: string): EngineError {
  return new EngineError('invalid', `syntax error in pattern: ${pattern}`);
}

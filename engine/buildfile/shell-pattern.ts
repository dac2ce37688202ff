import { EngineError } from '../lib/errors.ts';

type Token = 'any' | 'one' | { sign: string };
type Where = Readonly<{ atEnd: boolean; isLongest: boolean }>;

/** Steps of comparison for one replacement: a Buildfile cannot hold up the daemon. */
const STEPS_MOST = 20_000_000;

/** `value` without the part at its beginning or its end that the pattern of `*` and `?` matches. */
export function withoutMatch(value: string, pattern: string, { atEnd, isLongest }: Where): string {
  const signs = Array.from(value);
  const tokens = tokensOf(pattern);
  const lengths = atEnd ? lengthsOfMatches(signs.toReversed(), tokens.toReversed()) : lengthsOfMatches(signs, tokens);
  const length = isLongest ? lengths.at(-1) : lengths[0];
  if (length === undefined) return value;
  return (atEnd ? signs.slice(0, signs.length - length) : signs.slice(length)).join('');
}

/** `value` with the first match, or every one, replaced. Throws `invalid` when it takes too long. */
export function withReplaced(value: string, pattern: string, replacement: string, isEvery: boolean): string {
  const signs = Array.from(value);
  const tokens = tokensOf(pattern);
  if (signs.length * signs.length * tokens.length > STEPS_MOST) {
    throw new EngineError('invalid', 'the value is too long for a replacement');
  }
  let result = '';
  for (let at = 0; at < signs.length;) {
    const length = lengthsOfMatches(signs.slice(at), tokens).at(-1) ?? 0;
    if (length === 0) {
      result += signs[at]!;
      at += 1;
      continue;
    }
    result += replacement;
    at += length;
    if (!isEvery) return result + signs.slice(at).join('');
  }
  return result;
}

function tokensOf(pattern: string): Token[] {
  const tokens: Token[] = [];
  const signs = Array.from(pattern);
  for (let at = 0; at < signs.length; at += 1) {
    const sign = signs[at]!;
    if (sign === '*') tokens.push('any');
    else if (sign === '?') tokens.push('one');
    else if (sign === '\\' && at + 1 < signs.length) {
      at += 1;
      tokens.push({ sign: signs[at]! });
    } else tokens.push({ sign });
  }
  return tokens;
}

/**
 * The lengths of the prefixes that the pattern matches, in order: all positions in the pattern are followed at once.
 */
function lengthsOfMatches(signs: readonly string[], tokens: readonly Token[]): number[] {
  const lengths: number[] = [];
  let places = behindStars([0], tokens);
  for (let length = 0; places.size > 0; length += 1) {
    if (places.has(tokens.length)) lengths.push(length);
    const sign = signs[length];
    if (sign === undefined) break;
    const next: number[] = [];
    for (const place of places) {
      const token = tokens[place];
      if (token === 'any') next.push(place);
      else if (token !== undefined && (token === 'one' || token.sign === sign)) next.push(place + 1);
    }
    places = behindStars(next, tokens);
  }
  return lengths;
}

/** A star also matches the empty text. */
function behindStars(places: readonly number[], tokens: readonly Token[]): Set<number> {
  const all = new Set<number>();
  for (let place of places) {
    all.add(place);
    while (tokens[place] === 'any') {
      place += 1;
      all.add(place);
    }
  }
  return all;
}

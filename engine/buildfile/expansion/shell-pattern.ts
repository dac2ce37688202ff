import type { ExpansionBudget } from './expansion-budget.ts';

type Token = 'any' | 'one' | { sign: string };
type Where = Readonly<{ atEnd: boolean; isLongest: boolean }>;

type Budget = Pick<ExpansionBudget, 'addLength' | 'addSteps'>;

/** `value` without the part at its beginning or its end that the pattern of `*` and `?` matches. Throws `invalid`. */
export function withoutMatch(value: string, pattern: string, { atEnd, isLongest }: Where, budget: Budget): string {
  budget.addSteps(value.length + pattern.length);
  const signs = Array.from(value);
  const tokens = tokensOf(pattern);
  const lengths = atEnd
    ? lengthsOfMatches(signs.toReversed(), 0, tokens.toReversed(), budget)
    : lengthsOfMatches(signs, 0, tokens, budget);
  const length = isLongest ? lengths.at(-1) : lengths[0];
  if (length === undefined) return value;
  return (atEnd ? signs.slice(0, signs.length - length) : signs.slice(length)).join('');
}

type Replacement = Readonly<{ pattern: string; replacement: string; isEvery: boolean }>;

/** `value` with the first match, or every one, replaced. Throws `invalid` when it takes too long. */
export function withReplaced(value: string, { pattern, replacement, isEvery }: Replacement, budget: Budget): string {
  budget.addSteps(value.length + pattern.length);
  const signs = Array.from(value);
  const tokens = tokensOf(pattern);
  let result = '';
  for (let at = 0; at < signs.length;) {
    const length = lengthsOfMatches(signs, at, tokens, budget).at(-1) ?? 0;
    if (length === 0) {
      result += signs[at]!;
      at += 1;
      continue;
    }
    result += replacement;
    budget.addLength(replacement.length);
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
    if (sign === '*') {
      if (tokens.at(-1) !== 'any') tokens.push('any'); // further ones mean nothing
    } else if (sign === '?') tokens.push('one');
    else if (sign === '\\' && at + 1 < signs.length) {
      at += 1;
      tokens.push({ sign: signs[at]! });
    } else tokens.push({ sign });
  }
  return tokens;
}

/**
 * The lengths of the parts from `start` on that the pattern matches, in order: all positions in the pattern are followed at
 * once.
 */
function lengthsOfMatches(signs: readonly string[], start: number, tokens: readonly Token[], budget: Budget): number[] {
  const lengths: number[] = [];
  let places = behindStars([0], tokens);
  for (let length = 0; places.size > 0; length += 1) {
    budget.addSteps(places.size);
    if (places.has(tokens.length)) lengths.push(length);
    const sign = signs[start + length];
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

/** A pattern that is none. */
export class PatternError extends Error {
  override name = 'PatternError';
}

type Ranges = readonly (readonly [number, number])[];

/** One step of a pattern, for one character of a text. */
export type Step =
  | { kind: 'sign'; sign: string }
  | { kind: 'class'; ranges: Ranges; isNegated: boolean }
  /** `?`: one character that is no `/`. */
  | { kind: 'one' }
  /** `*`: any number of characters that are no `/`. */
  | { kind: 'some' }
  /** `**` at the end: all that follows. */
  | { kind: 'rest' }
  /** `**` elsewhere: folders that may be missing. */
  | { kind: 'folders' };

/**
 * Places in a pattern after a part of a text: the numbers of the next steps. Inside a folder of `**` it is that step's number
 * plus the number of all places.
 */
export type Places = readonly number[];

const MAX_PATTERN_LENGTH = 256;

/**
 * A pattern of paths. All places are followed at the same time, so a text costs at most the product of its length and the
 * pattern's; a text may come in parts, such as the names of a path.
 */
export class Glob {
  readonly #steps: readonly Step[];
  /** The round of `#add` in which a place was added last. */
  readonly #rounds: Uint32Array;
  #round = 0;
  #next: number[] = [];
  /** Comparisons so far. */
  work = 0;

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    this.#rounds = new Uint32Array(2 * steps.length + 2);
  }

  /** The places before a text. */
  begin(): Places {
    this.#begin();
    this.#add(0);
    return this.#next;
  }

  /** The places after these and a further part of the text; none: nothing that follows can match. */
  follow(places: Places, text: string): Places {
    let current = places;
    for (const sign of text) {
      if (current.length === 0) return current;
      this.#begin();
      for (const place of current) this.#take(place, sign);
      current = this.#next;
    }
    return current;
  }

  /** Whether the text up to these places matches. */
  isEnd(places: Places): boolean {
    return places.some((place) => place === this.#steps.length || this.#steps[place]?.kind === 'rest');
  }

  matches(text: string): boolean {
    return this.isEnd(this.follow(this.begin(), text));
  }

  #begin(): void {
    this.#round += 1;
    this.#next = [];
  }

  #take(place: number, sign: string): void {
    this.work += 1;
    const count = this.#steps.length + 1;
    const index = place % count;
    const step = this.#steps[index];
    if (step === undefined) return;
    if (step.kind === 'rest') this.#add(index);
    else if (step.kind === 'some') {
      if (sign !== '/') this.#add(index);
    } else if (step.kind === 'folders') {
      if (sign === '/') this.#add(index);
      else this.#mark(index + count);
    } else if (isLike(step, sign)) this.#add(index + 1);
  }

  /** Adds a place, and those behind stars that may stand for nothing. */
  #add(index: number): void {
    for (let place = index; this.#mark(place); place += 1) {
      const kind = this.#steps[place]?.kind;
      if (kind !== 'some' && kind !== 'folders') return;
    }
  }

  #mark(place: number): boolean {
    if (this.#rounds[place] === this.#round) return false;
    this.#rounds[place] = this.#round;
    this.#next.push(place);
    return true;
  }
}

/** Whether a path has characters that a pattern of `parseGlob` gives a meaning. */
export function hasWildcards(path: string): boolean {
  return /(?:^|[^\\])(?:\\\\)*[*?[]/.test(path);
}

/** Parses a pattern of Go's filepath.Match: `*` and `?` never match a slash, `[a-c]` is a class. Throws `PatternError`. */
export function parseGlob(pattern: string): Glob {
  refuseLong(pattern);
  const signs = Array.from(pattern);
  const steps: Step[] = [];
  for (let at = 0; at < signs.length; at += 1) {
    const sign = signs[at]!;
    if (sign === '*') {
      if (steps.at(-1)?.kind !== 'some') steps.push({ kind: 'some' });
    } else if (sign === '?') steps.push({ kind: 'one' });
    else if (sign === '[') {
      const { end, step } = parseClass(signs, at, pattern, { bracketMayBeFirst: false });
      steps.push(step);
      at = end;
    } else if (sign === '\\') {
      at += 1;
      steps.push({ kind: 'sign', sign: signs[at] ?? refuse(pattern) });
    } else steps.push({ kind: 'sign', sign });
  }
  return new Glob(steps);
}

/** Throws `PatternError`. */
export function refuseLong(pattern: string): void {
  if (pattern.length <= MAX_PATTERN_LENGTH) return;
  throw new PatternError(`the pattern has more than ${MAX_PATTERN_LENGTH} characters: ${pattern.slice(0, 40)}…`);
}

/** The class that begins at `start`, and the place of its closing bracket. Throws `PatternError`. */
export function parseClass(
  signs: readonly string[],
  start: number,
  pattern: string,
  { bracketMayBeFirst }: Readonly<{ bracketMayBeFirst: boolean }>,
): { end: number; step: Step } {
  const isNegated = signs[start + 1] === '^';
  const first = start + (isNegated ? 2 : 1);
  const ranges: [number, number][] = [];
  let at = first;
  const next = (): number => {
    if (signs[at] === '\\') at += 1;
    else if (!bracketMayBeFirst && (signs[at] === '-' || signs[at] === ']')) refuse(pattern);
    const code = signs[at]?.codePointAt(0) ?? refuse(pattern);
    at += 1;
    return code;
  };
  while (at < signs.length && (signs[at] !== ']' || at === first)) {
    const low = next();
    const isRange = signs[at] === '-' && (signs[at + 1] !== ']' || !bracketMayBeFirst);
    if (isRange) at += 1;
    const high = isRange ? next() : low;
    if (high < low && bracketMayBeFirst) refuse(pattern);
    ranges.push([low, high]);
  }
  if (at >= signs.length) refuse(pattern);
  return { end: at, step: { kind: 'class', ranges, isNegated } };
}

function refuse(pattern: string): never {
  throw new PatternError(`syntax error in pattern: ${pattern}`);
}

function isLike(step: Step, sign: string): boolean {
  if (step.kind === 'sign') return step.sign === sign;
  if (step.kind === 'one') return sign !== '/';
  if (step.kind !== 'class') return false;
  const code = sign.codePointAt(0)!;
  return step.ranges.some(([low, high]) => low <= code && code <= high) !== step.isNegated;
}

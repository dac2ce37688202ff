import { EngineError } from '../lib/errors.ts';
import { quote } from './go-text.ts';
import { withoutMatch, withReplaced } from './shell-pattern.ts';

/** The parameters of an expansion. */
export type Variables = ReadonlyMap<string, string>;

type Result = { word: string; words: string[] };

/** `NAME=value` entries as variables; a later one wins. */
export function variablesOf(entries: readonly string[]): Variables {
  return new Map(
    entries.map((entry) => {
      const equals = entry.indexOf('=');
      return equals < 0 ? [entry, ''] : [entry.slice(0, equals), entry.slice(equals + 1)];
    }),
  );
}

/**
 * Removes quotes and escape characters, and expands variables as a shell would: `$a`, `${a}`, `${a:-b}`, `${a:+b}`,
 * `${a:?b}`, and of newer builders `${a-b}`, `${a+b}`, `${a#b}`, `${a%b}`, `${a/b/c}`.
 *
 * Throws `invalid`.
 */
export function expandWord(word: string, variables: Variables, escape: string): string {
  return expanded(word, variables, escape).word;
}

/** Like `expandWord`, but splits at blanks outside of quotes, also at those from variables. */
export function expandToWords(word: string, variables: Variables, escape: string): string[] {
  return expanded(word, variables, escape).words;
}

function expanded(word: string, variables: Variables, escape: string): Result {
  try {
    return new Expansion(word, variables, escape).upTo(undefined);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('invalid', `failed to process ${quote(word)}: ${error.message}`);
  }
}

/** Each level takes a part of the stack. */
const DEEPEST = 200;

class Expansion {
  readonly #signs: readonly string[];
  readonly #variables: Variables;
  readonly #escape: string;
  #at = 0;
  #depth = 0;

  constructor(word: string, variables: Variables, escape: string) {
    this.#signs = Array.from(word);
    this.#variables = variables;
    this.#escape = escape;
  }

  /** Reads to the end, or behind `stop`. */
  upTo(stop: string | undefined): Result {
    if (this.#depth >= DEEPEST) throw invalid(`more than ${DEEPEST} substitutions in each other`);
    this.#depth += 1;
    const result = this.#collected(stop);
    this.#depth -= 1;
    return result;
  }

  #collected(stop: string | undefined): Result {
    const collected = new Words();
    for (;;) {
      const sign = this.#next();
      if (sign === undefined) {
        if (stop === undefined) return collected.result();
        throw invalid(`unexpected end of statement while looking for matching ${stop}`);
      }
      if (sign === stop) return collected.result();
      if (sign === "'") collected.addWhole(this.#singleQuoted());
      else if (sign === '"') collected.addWhole(this.#doubleQuoted());
      else if (sign === '$') collected.addSplit(this.#dollar());
      else if (sign === this.#escape) {
        const escaped = this.#next();
        if (escaped !== undefined) collected.addWhole(escaped);
      } else collected.addSplit(sign);
    }
  }

  #next(): string | undefined {
    const sign = this.#signs[this.#at];
    if (sign !== undefined) this.#at += 1;
    return sign;
  }

  #peek(): string | undefined {
    return this.#signs[this.#at];
  }

  #singleQuoted(): string {
    let text = '';
    for (let sign = this.#next(); sign !== "'"; sign = this.#next()) {
      if (sign === undefined) throw invalid('unexpected end of statement while looking for matching single-quote');
      text += sign;
    }
    return text;
  }

  #doubleQuoted(): string {
    let text = '';
    for (let sign = this.#next(); sign !== '"'; sign = this.#next()) {
      if (sign === undefined) throw invalid('unexpected end of statement while looking for matching double-quote');
      const next = this.#peek();
      if (sign === '$') text += this.#dollar();
      else if (sign !== this.#escape) text += sign;
      else if (next === '"' || next === '$' || next === this.#escape) text += this.#next()!;
      else if (next !== undefined) text += sign; // before anything else it is an ordinary character
    }
    return text;
  }

  #dollar(): string {
    if (this.#peek() !== '{') {
      const name = this.#name();
      return name === '' ? '$' : (this.#variables.get(name) ?? '');
    }
    this.#next();
    const first = this.#peek();
    if (first === undefined) throw invalid("syntax error: missing '}'");
    if (first === '{' || first === '}' || first === ':') throw invalid('syntax error: bad substitution');
    const name = this.#name();
    const sign = this.#next();
    switch (sign) {
      case '}':
        return this.#variables.get(name) ?? '';
      case ':':
        return this.#modified(name, this.#next(), true);
      case '?':
      case '-':
      case '+':
        return this.#modified(name, sign, false);
      case '#':
      case '%':
        return this.#stripped(name, sign);
      case '/':
        return this.#replaced(name);
      case undefined:
      default:
        throw invalid("missing ':' in substitution");
    }
  }

  /** `emptyCounts`: with a colon an empty variable counts as unset. */
  #modified(name: string, modifier: string | undefined, emptyCounts: boolean): string {
    const other = this.#braced();
    const value = this.#variables.get(name);
    const isThere = value !== undefined && !(emptyCounts && value === '');
    switch (modifier) {
      case '+':
        return isThere ? other : '';
      case '-':
        return isThere ? value : other;
      case '?':
        if (isThere) return value;
        throw invalid(`${name}: ${other || `is not allowed to be ${value === undefined ? 'unset' : 'empty'}`}`);
      case undefined:
      default:
        throw invalid(`unsupported modifier (${modifier ?? ''}) in substitution`);
    }
  }

  #stripped(name: string, sign: '#' | '%'): string {
    const isLongest = this.#peek() === sign;
    if (isLongest) this.#next();
    const pattern = this.#braced();
    return withoutMatch(this.#variables.get(name) ?? '', pattern, { atEnd: sign === '%', isLongest });
  }

  #replaced(name: string): string {
    const isEvery = this.#peek() === '/';
    if (isEvery) this.#next();
    const pattern = this.upTo('/').word;
    const replacement = this.#braced();
    return withReplaced(this.#variables.get(name) ?? '', pattern, replacement, isEvery);
  }

  /** The rest of `${…}`, which may have variables in it. */
  #braced(): string {
    try {
      return this.upTo('}').word;
    } catch (error) {
      if (this.#peek() === undefined && error instanceof EngineError) throw invalid("syntax error: missing '}'");
      throw error;
    }
  }

  /** Letters, digits and `_`; or digits alone; or one of the shell's special characters. */
  #name(): string {
    const rest = this.#signs.slice(this.#at, this.#at + 256).join('');
    const [name = ''] = /^(?:\p{Nd}+|[@*#?\-$!]|[\p{L}\p{Nd}_]*)/u.exec(rest) ?? [];
    this.#at += Array.from(name).length;
    return name;
  }
}

/** More than any kernel takes as a variable; `ENV a=$a$a` doubles with every line. */
const MAX_LENGTH = 1024 * 1024;

/** The text so far, as one word and as several. */
class Words {
  readonly #words: string[] = [];
  #whole = '';
  #word = '';

  addWhole(text: string): void {
    this.#grow(text);
    this.#word += text;
  }

  addSplit(text: string): void {
    this.#grow(text);
    for (const sign of text) {
      if (/\s/u.test(sign)) this.#endWord();
      else this.#word += sign;
    }
  }

  result(): Result {
    this.#endWord();
    return { word: this.#whole, words: this.#words };
  }

  #grow(text: string): void {
    this.#whole += text;
    if (this.#whole.length > MAX_LENGTH) throw invalid(`the result is longer than ${MAX_LENGTH} characters`);
  }

  #endWord(): void {
    if (this.#word !== '') this.#words.push(this.#word);
    this.#word = '';
  }
}

function invalid(message: string): EngineError {
  return new EngineError('invalid', message);
}

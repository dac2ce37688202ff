import { EngineError } from '../../lib/errors.ts';
import { quote } from '../go-text.ts';
import { ExpansionBudget } from './expansion-budget.ts';
import { withoutMatch, withReplaced } from './shell-pattern.ts';

/** The parameters of an expansion. */
export type Variables = Pick<ReadonlyMap<string, string>, 'get'>;

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
 * `${a:?b}`, and of newer builders `${a-b}`, `${a+b}`, `${a#b}`, `${a%b}`, `${a/b/c}`. The words of one instruction share a
 * budget.
 *
 * Throws `invalid`.
 */
export function expandWord(
  word: string,
  variables: Variables,
  escape: string,
  budget: ExpansionBudget = new ExpansionBudget(),
): string {
  const whole = new WholeText();
  expandInto(whole, word, new Expansion(word, { variables, escape, budget }));
  return whole.text;
}

/** Like `expandWord`, but splits at blanks outside of quotes, also at those from variables. */
export function expandToWords(
  word: string,
  variables: Variables,
  escape: string,
  budget: ExpansionBudget = new ExpansionBudget(),
): string[] {
  const words = new SplitText();
  expandInto(words, word, new Expansion(word, { variables, escape, budget }));
  return words.all();
}

function expandInto(target: Target, word: string, expansion: Expansion): void {
  try {
    expansion.readTo(undefined, target);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('invalid', `failed to process ${quote(shorten(word))}: ${error.message}`);
  }
}

const MAX_SHOWN_LENGTH = 4096;

function shorten(word: string): string {
  return word.length <= MAX_SHOWN_LENGTH ? word : `${word.slice(0, MAX_SHOWN_LENGTH)}…`;
}

type Target = { addWhole: (text: string) => void; addSplit: (text: string) => void };
type Parameters = Readonly<{ variables: Variables; escape: string; budget: ExpansionBudget }>;

/** Each level takes a part of the stack. */
const DEEPEST = 200;
/** A variable: letters, digits and `_`; or digits alone; or one of the shell's special characters. */
const NAME = /\p{Nd}+|[@*#?\-$!]|[\p{L}\p{Nd}_]*/uy;
/** Characters that mean only themselves, whatever is around them. */
const PLAIN = /[^'"$\\`}/]+/y;

class Expansion {
  readonly #text: string;
  readonly #variables: Variables;
  readonly #escape: string;
  readonly #budget: ExpansionBudget;
  #at = 0;
  #depth = 0;

  constructor(text: string, { variables, escape, budget }: Parameters) {
    this.#text = text;
    this.#variables = variables;
    this.#escape = escape;
    this.#budget = budget;
  }

  /** Reads to the end, or behind `stop`. */
  readTo(stop: string | undefined, target: Target): void {
    if (this.#depth >= DEEPEST) throw invalid(`more than ${DEEPEST} substitutions in each other`);
    this.#depth += 1;
    this.#collect(stop, target);
    this.#depth -= 1;
  }

  #collect(stop: string | undefined, target: Target): void {
    for (;;) {
      const plain = this.#match(PLAIN);
      if (plain !== '') target.addSplit(plain);
      const sign = this.#next();
      if (sign === undefined) {
        if (stop === undefined) return;
        throw invalid(`unexpected end of statement while looking for matching ${stop}`);
      }
      if (sign === stop) return;
      if (sign === "'") target.addWhole(this.#singleQuoted());
      else if (sign === '"') target.addWhole(this.#doubleQuoted());
      else if (sign === '$') target.addSplit(this.#dollar());
      else if (sign === this.#escape) {
        const escaped = this.#next();
        if (escaped !== undefined) target.addWhole(escaped);
      } else target.addSplit(sign);
    }
  }

  #next(): string | undefined {
    const sign = this.#text[this.#at];
    if (sign !== undefined) this.#at += 1;
    return sign;
  }

  #peek(): string | undefined {
    return this.#text[this.#at];
  }

  /** The text from here on that a sticky pattern matches. */
  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [matched = ''] = pattern.exec(this.#text) ?? [];
    this.#at += matched.length;
    return matched;
  }

  #singleQuoted(): string {
    const start = this.#at;
    const end = this.#text.indexOf("'", start);
    if (end < 0) throw invalid('unexpected end of statement while looking for matching single-quote');
    this.#at = end + 1;
    return this.#text.slice(start, end);
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
    const value = this.#substituted();
    this.#budget.addExpansion(value);
    return value;
  }

  #substituted(): string {
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
    const where = { atEnd: sign === '%', isLongest };
    return withoutMatch(this.#variables.get(name) ?? '', pattern, where, this.#budget);
  }

  #replaced(name: string): string {
    const isEvery = this.#peek() === '/';
    if (isEvery) this.#next();
    const pattern = this.#read('/');
    const replacement = this.#braced();
    return withReplaced(this.#variables.get(name) ?? '', { pattern, replacement, isEvery }, this.#budget);
  }

  /** The rest of `${…}`, which may have variables in it. */
  #braced(): string {
    try {
      return this.#read('}');
    } catch (error) {
      if (this.#peek() === undefined && error instanceof EngineError) throw invalid("syntax error: missing '}'");
      throw error;
    }
  }

  #read(stop: string): string {
    const whole = new WholeText();
    this.readTo(stop, whole);
    return whole.text;
  }

  #name(): string {
    return this.#match(NAME);
  }
}

class WholeText implements Target {
  text = '';

  readonly addWhole = (text: string): void => {
    this.text += text;
  };

  readonly addSplit = this.addWhole;
}

class SplitText implements Target {
  readonly #words: string[] = [];
  #word = '';

  readonly addWhole = (text: string): void => {
    this.#word += text;
  };

  readonly addSplit = (text: string): void => {
    const [first = '', ...others] = text.split(/\s+/u);
    this.#word += first;
    for (const word of others) {
      this.#endWord();
      this.#word = word;
    }
  };

  all(): string[] {
    this.#endWord();
    return this.#words;
  }

  #endWord(): void {
    if (this.#word !== '') this.#words.push(this.#word);
    this.#word = '';
  }
}

function invalid(message: string): EngineError {
  return new EngineError('invalid', message);
}

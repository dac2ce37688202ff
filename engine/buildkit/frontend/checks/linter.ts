import { EngineError } from '../../../lib/errors.ts';
import { booleanRefusal, parseBoolean } from '../../../lib/notations/boolean.ts';
import { suggestionFor } from '../../../lib/notations/suggestion.ts';
import { RULES, type Rule } from './rules.ts';

/** Warnings of a file, and lines of their places; others are left out. */
const [MAX_WARNINGS, MAX_LINES] = [1000, 10_000];
/** Suggestions for a file, known names that each is chosen from, and characters of a name. */
const [MAX_SUGGESTIONS, MAX_KNOWN, MAX_NAME_LENGTH] = [100, 200, 32];

/** First and last line, from 1. */
export type Place = Readonly<{ number: number; end: number }>;
export type Warning = Readonly<{ rule: Rule; detail: string; place: Place }>;

/** Which rules count, and whether a build with warnings fails. */
export type CheckOptions = Readonly<{
  skipped: ReadonlySet<string> | 'all';
  experimental: ReadonlySet<string> | 'all';
  failsOnWarnings: boolean;
}>;

/** Reads `skip=A,B;experimental=all;error=true`. Throws `invalid`. */
export function checkOptions(text: string): CheckOptions {
  const options = { skipped: new Set<string>(), experimental: new Set<string>(), failsOnWarnings: false };
  const read: { -readonly [Key in keyof CheckOptions]: CheckOptions[Key] } = options;
  if (text.trim() === '') return read;
  for (const part of text.trim().split(';')) {
    const equals = part.indexOf('=');
    if (equals < 0) throw invalid(`invalid check option ${JSON.stringify(part)}`);
    const [key, value] = [part.slice(0, equals).trim(), part.slice(equals + 1).trim()];
    const names = (): ReadonlySet<string> | 'all' =>
      value === 'all' ? 'all' : new Set(value.split(',').map((name) => name.trim()));
    if (key === 'skip') read.skipped = names();
    else if (key === 'experimental') read.experimental = names();
    else if (key === 'error') {
      const parsed = parseBoolean(value);
      if (parsed === undefined) {
        throw invalid(`failed to parse check option ${JSON.stringify(part)}: ${booleanRefusal(value)}`);
      }
      read.failsOnWarnings = parsed;
    } else throw invalid(`invalid check option ${JSON.stringify(key)}`);
  }
  return read;
}

/** Collects the warnings of the rules that count. */
export class Linter {
  readonly warnings: Warning[] = [];
  readonly #options: CheckOptions;
  #lines = 0;
  #suggestions = 0;

  constructor(options: CheckOptions) {
    this.#options = options;
  }

  warn(name: keyof typeof RULES, place: Place, detail: string): void {
    const rule = RULES[name];
    if (this.isFull || !this.counts(rule)) return;
    this.warnings.push({ rule, place, detail });
    this.#lines += place.end - place.number + 1;
  }

  /** Whether further warnings are left out. */
  get isFull(): boolean {
    return this.warnings.length >= MAX_WARNINGS || this.#lines >= MAX_LINES;
  }

  /** The known name that a mistyped one comes closest to; undefined if none is close, and behind many suggestions. */
  suggestionFor(name: string, known: Iterable<string>): string | undefined {
    if (name.length > MAX_NAME_LENGTH || this.#suggestions >= MAX_SUGGESTIONS) return undefined;
    this.#suggestions += 1;
    return suggestionFor(name, [...Iterator.from(known).take(MAX_KNOWN)]);
  }

  counts({ name, isExperimental }: Rule): boolean {
    const { skipped, experimental } = this.#options;
    if (isExperimental) return experimental === 'all' || experimental.has(name);
    return skipped !== 'all' && !skipped.has(name);
  }

  /** Throws `invalid` if the file asks for it, and there are warnings. */
  refuseWarnings(): void {
    if (!this.#options.failsOnWarnings || this.warnings.length === 0) return;
    const names = new Set(this.warnings.map(({ rule }) => rule.name));
    throw invalid(`lint violation found for rules: ${[...names].join(', ')}`);
  }
}

function invalid(message: string): EngineError {
  return new EngineError('invalid', `${message.startsWith('lint') ? '' : 'failed to parse check options: '}${message}`);
}

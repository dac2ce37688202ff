import { EngineError } from '../lib/errors.ts';
import { withSuggestion } from '../lib/notations/suggestion.ts';
import type { Dialect } from './dialect.ts';

/** The values of an instruction's flags, in their order. */
export type Flags = ReadonlyMap<string, readonly string[]>;

type Known = Readonly<{
  /** Given at most once, with a value. */
  once?: readonly string[];
  repeated?: readonly string[];
  /** `--link`, `--link=false`: their values are `true` and `false`. */
  booleans?: readonly string[];
}>;

/** Throws `invalid` for others, by name. */
export function readFlags(written: readonly string[], dialect: Dialect, known: Known = {}): Flags {
  const { once = [], repeated = [], booleans = [] } = known;
  const words = dialect === 'classic' ? CLASSIC : BUILDKIT;
  const flags = new Map<string, string[]>();
  for (const flag of written) {
    const [, name = '', value] = /^--([^=]*)(?:=([^]*))?$/.exec(flag) ?? [];
    const isBoolean = booleans.includes(name);
    if (!once.includes(name) && !repeated.includes(name) && !isBoolean) {
      throw new EngineError('invalid', words.unknown(name, [...once, ...repeated, ...booleans]));
    }
    const values = flags.get(name) ?? [];
    if (values.length > 0 && !repeated.includes(name)) throw new EngineError('invalid', words.duplicate(name));
    if (isBoolean ? value === '' : value === undefined) throw new EngineError('invalid', words.missing(name));
    values.push(isBoolean ? booleanOf(name, value) : value!);
    flags.set(name, values);
  }
  return flags;
}

/** The value of a flag that is given at most once; empty without it. */
export function flag(flags: Flags, name: string): string {
  return flags.get(name)?.[0] ?? '';
}

function booleanOf(name: string, value = 'true'): string {
  const lower = value.toLowerCase();
  if (lower === 'true' || lower === 'false') return lower;
  throw new EngineError('invalid', `expecting boolean value for flag --${name}, not: ${value}`);
}

const CLASSIC = {
  unknown: (name: string): string => `Unknown flag: ${name}`,
  duplicate: (name: string): string => `Duplicate flag specified: ${name}`,
  missing: (name: string): string => `Missing a value on flag: ${name}`,
};

const BUILDKIT = {
  unknown: (name: string, known: readonly string[]): string => withSuggestion(`unknown flag: --${name}`, name, known),
  duplicate: (name: string): string => `duplicate flag specified: --${name}`,
  missing: (name: string): string => `missing a value on flag: --${name}`,
};

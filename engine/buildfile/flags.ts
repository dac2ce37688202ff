import { EngineError } from '../lib/errors.ts';

/** The values of an instruction's flags, in their order. */
export type Flags = ReadonlyMap<string, readonly string[]>;

/** `known` may be given once, `repeated` any number of times. Throws `invalid` for others, by name. */
export function readFlags(
  written: readonly string[],
  known: readonly string[] = [],
  repeated: readonly string[] = [],
): Flags {
  const flags = new Map<string, string[]>();
  for (const flag of written) {
    const [, name = '', value] = /^--([^=]*)(?:=([^]*))?$/.exec(flag) ?? [];
    if (!known.includes(name) && !repeated.includes(name)) throw new EngineError('invalid', `Unknown flag: ${name}`);
    const values = flags.get(name) ?? [];
    if (values.length > 0 && !repeated.includes(name)) {
      throw new EngineError('invalid', `Duplicate flag specified: ${name}`);
    }
    if (value === undefined) throw new EngineError('invalid', `Missing a value on flag: ${name}`);
    values.push(value);
    flags.set(name, values);
  }
  return flags;
}

/** The value of a flag that is given at most once; empty without it. */
export function flag(flags: Flags, name: string): string {
  return flags.get(name)?.[0] ?? '';
}

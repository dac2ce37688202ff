import { EngineError, refuseIf } from '../../lib/errors.ts';
import { booleanRefusal, parseBoolean } from '../../lib/notations/boolean.ts';

/** Options of networks have the prefix of the specification or of docker. */
export const OPTION_PREFIXES = ['com.docker.network', 'com.engine.network'] as const;

export type Options = Readonly<Record<string, string>>;

/** The value of an option such as `bridge.name` under one of the prefixes, with the key as it was written. */
export function optionOf(options: Options, name: string): { key: string; value: string } | undefined {
  for (const prefix of OPTION_PREFIXES) {
    const key = `${prefix}.${name}`;
    const value = options[key];
    if (value !== undefined) return { key, value };
  }
  return undefined;
}

/** Throws `invalid` for anything but one of Go's booleans. */
export function booleanOption(options: Options, name: string, otherwise: boolean): boolean {
  const found = optionOf(options, name);
  if (found === undefined) return otherwise;
  const parsed = parseBoolean(found.value);
  if (parsed === undefined) throw unreadable(found, booleanRefusal(found.value));
  return parsed;
}

/** Throws `invalid` for anything but a whole number. */
function numberOption(options: Options, name: string): number | undefined {
  const found = optionOf(options, name);
  if (found === undefined) return undefined;
  if (!/^[+-]?\d{1,9}$/.test(found.value)) {
    throw unreadable(found, `strconv.Atoi: parsing "${found.value}": invalid syntax`);
  }
  return Number(found.value);
}

/** The MTU of a network's options; 0: the usual one. Throws `invalid`. */
export function mtuOption(options: Options): number {
  const mtu = numberOption(options, 'driver.mtu') ?? 0;
  refuseIf(mtu !== 0 && (mtu < 68 || mtu > 65_535), `invalid MTU number: ${mtu}`);
  return mtu;
}

/** The error for an option that cannot be read, in dockerd's words. */
export function unreadable({ key, value }: { key: string; value: string }, reason: string): EngineError {
  return new EngineError('invalid', `failed to parse ${key} value: ${value} (${reason})`);
}

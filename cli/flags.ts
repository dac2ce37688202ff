import { EXIT, Exit } from './exit-codes.ts';

/** For flags that may be repeated. */
export function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

/** `key=value` flags as the API's JSON map; undefined where there are none. */
export function filtersOf(flags: readonly string[]): string | undefined {
  if (flags.length === 0) return undefined;
  const filters: Record<string, string[]> = {};
  for (const flag of flags) {
    const at = flag.indexOf('=');
    if (at < 1) throw new Exit(EXIT.usage, `invalid filter "${flag}": expected key=value`);
    (filters[flag.slice(0, at)] ??= []).push(flag.slice(at + 1));
  }
  return JSON.stringify(filters);
}

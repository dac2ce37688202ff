import { UsageError } from '../exit-codes.ts';
import type { Kind, Values } from './command.ts';

const UNITS_NS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

/** Reads one value of a flag; undefined if it is not of this kind. */
export const READ: { readonly [K in Exclude<Kind, 'list'>]: (text: string) => Values[K] | undefined } = {
  text: (text) => text,
  boolean: (text) => {
    if (/^(1|t|true)$/i.test(text)) return true;
    return /^(0|f|false)$/i.test(text) ? false : undefined;
  },
  integer: (text) => (/^[+-]?\d+$/.test(text) ? Number(text) : undefined),
  decimal: (text) => (/^\d*\.?\d+$/.test(text) ? Number(text) : undefined),
  bytes: bytesOf,
  duration: durationNs,
};

/** Bytes of `512m`, `1.5g`, `100k`, `4096b`, `4096`, or `-1` for no limit. */
function bytesOf(text: string): number | undefined {
  if (text === '-1') return -1;
  const match = /^(\d+(?:\.\d+)?) ?(?:([kmgtp]?)(?:i?b)?)$/i.exec(text);
  if (match === null) return undefined;
  return Math.floor(Number(match[1]) * 1024 ** ' kmgtp'.indexOf(match[2]!.toLowerCase() || ' '));
}

/** Nanoseconds of `1h30m`, `10s`, `1.5s`, `0`. */
export function durationNs(text: string): number | undefined {
  if (text === '0') return 0;
  if (!/^(\d+(\.\d+)?(ns|us|\u00b5s|ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|\u00b5s|ms|s|m|h)/g))
    total += Number(count) * UNITS_NS[unit!]!;
  return Math.round(total);
}

/** A time in UNIX seconds, for the API, from a duration before now, a date, or UNIX seconds. */
export function timeOf(text: string | undefined, now = Date.now()): string | undefined {
  if (text === undefined || /^\d+(\.\d+)?$/.test(text)) return text;
  const ago = durationNs(text);
  if (ago !== undefined) return ((now - ago / 1e6) / 1000).toFixed(3);
  // A fraction may have nine digits, of which Date keeps three.
  const seconds = Date.parse(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : text) / 1000;
  if (!/^\d{4}-\d\d-\d\d(T|$)/.test(text) || Number.isNaN(seconds)) {
    throw new UsageError(`invalid time "${text}": expected 10m, 2026-01-31T12:00:00 or UNIX seconds`);
  }
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? '0';
  return `${Math.floor(seconds)}.${fraction}`;
}

/** `key=value` flags as the API's JSON map; undefined without flags. */
export function filtersOf(flags: readonly string[]): string | undefined {
  if (flags.length === 0) return undefined;
  const filters: Record<string, string[]> = {};
  for (const flag of flags) {
    const [key, value] = splitOnce(flag, '=');
    if (key === '' || !flag.includes('=')) {
      throw new UsageError(
        `invalid argument "${flag}" for "--filter" flag: invalid filter '${flag}' (expected key=value)`,
      );
    }
    (filters[key.trim().toLowerCase()] ??= []).push(value.trim());
  }
  return JSON.stringify(filters);
}

/** The text before and after the first separator. */
export function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** `name=value` words as a map; a word without `=` is a name with an empty value. */
export function mapOf(words: readonly string[]): Record<string, string> {
  return Object.fromEntries(words.map((word) => splitOnce(word, '=')));
}

import { EngineError } from '../../lib/errors.ts';
import { parsePatterns, type Pattern } from '../../lib/notations/pattern.ts';

/** The values of each filter key; a missing key restricts nothing. */
export type Filters = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Reads a `filters` query parameter in both of its shapes: `{"type":["container"]}`, the specification's, and
 * `{"type":{"container":true}}`, which the docker command lines send.
 */
export function parseFilters(text: string | undefined, allowed: readonly string[]): Filters {
  const filters = new Map<string, ReadonlySet<string>>();
  if (text === undefined || text === '') return filters;
  const given = parseJson(text);
  if (given === null) return filters;
  if (typeof given !== 'object' || Array.isArray(given)) throw invalid(text);
  for (const [key, values] of Object.entries(given)) {
    if (!allowed.includes(key)) throw new EngineError('invalid', `Invalid filter '${key}'`);
    filters.set(key, new Set(valuesOf(key, values)));
  }
  return filters;
}

/** The boolean of a filter such as `dangling`; if both are given, `true` counts. */
export function booleanFilter(filters: Filters, key: string): boolean | undefined {
  const values = filters.get(key);
  if (values === undefined || values.size === 0) return undefined;
  return [...values].map((value) => booleanOf(key, value)).includes(true);
}

/** Whether one value of a key passes a test, or the key is missing. */
export function anyValue(filters: Filters, key: string, isSatisfied: (value: string) => boolean): boolean {
  const values = filters.get(key);
  return values === undefined || values.size === 0 || [...values].some(isSatisfied);
}

/**
 * Whether a text equals one of a key's values, or matches it as a pattern. Throws `invalid` for patterns that are too
 * large.
 */
export function textFilter(filters: Filters, key: string): Pattern {
  const values = filters.get(key);
  if (values === undefined || values.size === 0) return () => true;
  const patterns = parsePatterns(values);
  return (text) => values.has(text) || patterns.some((pattern) => pattern(text));
}

/** Whether labels match every `key` or `key=value` of a `label` filter. */
export function labelsMatch(
  wanted: ReadonlySet<string> | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  if (wanted === undefined) return true;
  return [...wanted].every((label) => {
    const equals = label.indexOf('=');
    if (equals < 0) return Object.hasOwn(labels, label);
    const key = label.slice(0, equals);
    return Object.hasOwn(labels, key) && labels[key] === label.slice(equals + 1);
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new EngineError('invalid', `query parameter filters: not JSON: ${text}`, { cause: error });
  }
}

function valuesOf(key: string, values: unknown): string[] {
  if (values === null) return [];
  if (Array.isArray(values)) {
    return values.map((value) => {
      if (typeof value !== 'string') throw new EngineError('invalid', `Invalid filter '${key}': strings are expected`);
      return value;
    });
  }
  if (typeof values === 'object') return Object.keys(values);
  throw new EngineError('invalid', `Invalid filter '${key}': a list of strings is expected`);
}

function booleanOf(key: string, value: string): boolean {
  if (value === '1' || value.toLowerCase() === 'true') return true;
  if (value === '0' || value.toLowerCase() === 'false') return false;
  throw new EngineError('invalid', `Invalid filter '${key}=[${value}]'`);
}

function invalid(text: string): EngineError {
  return new EngineError('invalid', `query parameter filters: not a JSON object, not ${text}`);
}

import { TemplateError } from './error.ts';
import { goText } from './print.ts';

export type TemplateFunction = (...words: unknown[]) => unknown;

/** The functions of docker's templates, and those of Go's that they come with. */
export const FUNCTIONS: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  ['json', (value) => JSON.stringify(value ?? null)],
  ['len', (value) => lengthOf(value)],
  ['index', (value, ...keys) => keys.reduce(elementOf, value)],
  [
    'slice',
    (value, from, to) =>
      (value as string | unknown[]).slice(Number(from ?? 0), to === undefined ? undefined : Number(to)),
  ],
  ['print', printed],
  ['println', (...values) => `${values.map(goText).join(' ')}\n`],
  ['printf', (format, ...values) => formatted(String(format), values)],
  ['lower', (text) => goText(text).toLowerCase()],
  ['upper', (text) => goText(text).toUpperCase()],
  ['title', (text) => goText(text).replace(/\b\w/g, (letter) => letter.toUpperCase())],
  ['split', (text, separator) => goText(text).split(goText(separator))],
  ['join', (list, separator) => listOf(list).map(goText).join(goText(separator))],
  ['pad', (text, before, after) => ' '.repeat(Number(before)) + goText(text) + ' '.repeat(Number(after))],
  ['truncate', (text, length) => Array.from(goText(text)).slice(0, Number(length)).join('')],
  ['html', (...values) => printed(...values).replace(/[&<>"'\0]/g, (letter) => HTML.get(letter)!)],
  ['js', (...values) => printed(...values).replace(JS_SPECIAL, jsEscaped)],
  ['urlquery', (...values) => queryText(printed(...values))],
  ['eq', (value, ...others) => others.some((other) => same(value, other))],
  ['ne', (value, other) => !same(value, other)],
  ['lt', (a, b) => compare(a, b) < 0],
  ['le', (a, b) => compare(a, b) <= 0],
  ['gt', (a, b) => compare(a, b) > 0],
  ['ge', (a, b) => compare(a, b) >= 0],
  ['not', (value) => !isTrue(value)],
]);

const HTML: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&#34;',
    "'": '&#39;',
    '\0': '\ufffd',
  }),
);
// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const JS_SPECIAL = /[\u0000-\u001f\\'"<>&=]/g;

function jsEscaped(letter: string): string {
  if (`\\'"`.includes(letter)) return `\\${letter}`;
  return `\\u${letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;
}

function queryText(text: string): string {
  const encoded = encodeURIComponent(text.toWellFormed()).replaceAll('%20', '+');
  return encoded.replace(/[!'()*]/g, (letter) => `%${letter.codePointAt(0)!.toString(16).toUpperCase()}`);
}

/** As Go's Sprint: a blank between two values of which neither is a text. */
function printed(...values: unknown[]): string {
  return values
    .map((value, at) => {
      const isApart = at > 0 && typeof value !== 'string' && typeof values[at - 1] !== 'string';
      return (isApart ? ' ' : '') + goText(value);
    })
    .join('');
}

/** Truth in Go's templates: anything but false, 0, nil and empty values. */
export function isTrue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

function lengthOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (Array.isArray(value)) return value.length;
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
}

function elementOf(value: unknown, key: unknown): unknown {
  if (Array.isArray(value) || typeof value === 'string') {
    const at = Number(key);
    if (!(at >= 0 && at < value.length)) throw new TemplateError(`index out of range: ${goText(key)}`);
    return value[at];
  }
  if (typeof value !== 'object' || value === null) return '';
  // A missing key of a map gives an empty text, because docker's maps have texts as values.
  return Object.hasOwn(value, String(key)) ? (value as Record<string, unknown>)[String(key)] : '';
}

function listOf(value: unknown): unknown[] {
  if (value === null || value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

function same(a: unknown, b: unknown): boolean {
  return a === b || ((a ?? '') === '' && (b ?? '') === '');
}

function compare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return goText(a) < goText(b) ? -1 : Number(goText(a) > goText(b));
}

/** `%s`, `%v`, `%d`, `%q`, `%x`, `%t`, `%f`, with width, precision, `-` and `0`. */
function formatted(format: string, values: unknown[]): string {
  const left = [...values];
  return format.replace(
    /%([-0]*)(\d*)(?:\.(\d+))?([svdqxtf%])/g,
    (_, marks: string, width: string, digits: string | undefined, verb: string) => {
      if (verb === '%') return '%';
      const text = verbText(verb, left.shift(), digits);
      if (marks.includes('-')) return text.padEnd(Number(width));
      return text.padStart(Number(width), marks.includes('0') ? '0' : ' ');
    },
  );
}

function verbText(verb: string, value: unknown, digits: string | undefined): string {
  if (verb === 'q') return JSON.stringify(goText(value));
  if (verb === 'x') return typeof value === 'number' ? value.toString(16) : Buffer.from(goText(value)).toString('hex');
  if (verb === 'f') return Number(value).toFixed(Number(digits ?? 6));
  return digits === undefined ? goText(value) : goText(value).slice(0, Number(digits));
}

import { EngineError } from '../../lib/errors.ts';
import { parseBoolean } from '../../lib/notations/boolean.ts';
import { withSuggestion } from '../../lib/notations/suggestion.ts';
import { quote } from '../go-text.ts';
import { NO_MOUNT, type MountOption } from '../mount-option.ts';

type Draft = { -readonly [Key in keyof MountOption]: MountOption[Key] } & { isReadOnlyGiven: boolean };
type Expand = (value: string) => string;

const TYPES: readonly string[] = ['bind', 'cache', 'tmpfs', 'secret', 'ssh'];
const SHARINGS: readonly string[] = ['shared', 'private', 'locked'];
const KEYS: readonly string[] = [
  ...['type', 'from', 'source', 'target', 'readonly', 'id', 'sharing', 'required', 'size', 'mode', 'uid', 'gid'],
  ...['src', 'dst', 'destination', 'ro', 'rw', 'readwrite', 'env'],
];
const MAX_ID = 2 ** 32 - 1;

/** The stage or image of a `--mount`, before any variable is known. Throws `invalid` for a variable in it. */
export function mountSource(written: string): string {
  let from = '';
  for (const field of fieldsOf(written)) {
    const { key, value = '' } = split(field);
    if (key !== 'from') continue;
    if (/\$[^]/.test(value)) {
      throw invalid(`'${key}' doesn't support variable expansion, define alias stage instead`);
    }
    from = value;
  }
  return from;
}

/** A `--mount` of RUN as BuildKit reads it: its keys in turn, each with its variables. Throws `invalid`. */
export function buildkitMount(written: string, expand: Expand): MountOption {
  const draft: Draft = { ...NO_MOUNT, isReadOnlyGiven: false };
  for (const field of fieldsOf(written)) take(draft, field, expand);
  check(draft);
  const { isReadOnlyGiven, ...mount } = draft;
  return isReadOnlyGiven ? mount : { ...mount, isReadOnly: mount.type !== 'cache' && mount.type !== 'tmpfs' };
}

function take(draft: Draft, field: string, expand: Expand): void {
  const { key, value: given } = split(field);
  if (given === undefined) {
    takeWord(draft, key, field);
    return;
  }
  const value = expand(given);
  switch (key) {
    case 'type':
      draft.type = oneOf(TYPES, 'mount type', value) as Draft['type'];
      return;
    case 'sharing':
      draft.sharing = oneOf(SHARINGS, 'sharing value', value) as Draft['sharing'];
      return;
    case 'from':
      draft.from = value;
      return;
    case 'id':
      draft.id = value;
      return;
    case 'env':
      draft.env = value;
      return;
    case 'source':
    case 'src':
      draft.source = value;
      return;
    case 'target':
    case 'dst':
    case 'destination':
      draft.target = value;
      return;
    case 'readonly':
    case 'ro':
      setReadOnly(draft, booleanOf(key, value));
      return;
    case 'readwrite':
    case 'rw':
      setReadOnly(draft, !booleanOf(key, value));
      return;
    case 'required':
      refuseOther(draft, key, ['secret', 'ssh']);
      draft.isRequired = booleanOf(key, value);
      return;
    case 'size':
      refuseOther(draft, key, ['tmpfs']);
      draft.sizeBytes = ramBytes(value);
      if (draft.sizeBytes === undefined) throw invalid(`invalid value for ${key}: ${value}`);
      return;
    case 'mode':
    case 'uid':
    case 'gid':
      draft[key] = numberOf(key, value);
      return;
    default:
      throw invalid(withSuggestion(`unexpected key '${key}' in '${field}'`, key, KEYS));
  }
}

/** A key without a value. */
function takeWord(draft: Draft, key: string, field: string): void {
  if (key === 'readonly' || key === 'ro') setReadOnly(draft, true);
  else if (key === 'readwrite' || key === 'rw') setReadOnly(draft, false);
  else if (key === 'required') {
    refuseOther(draft, key, ['secret', 'ssh']);
    draft.isRequired = true;
  } else throw invalid(`invalid field '${field}' must be a key=value pair`);
}

function check(draft: Draft): void {
  const { type, from, source, target, id, sharing } = draft;
  if (type === 'bind' || type === 'tmpfs') {
    for (const key of ['mode', 'uid', 'gid'] as const) {
      if (draft[key] !== undefined) throw invalid(`${key} not allowed for ${quote(type)} type mounts`);
    }
  }
  if (type === 'secret') {
    if (from !== '') throw invalid('secret mount should not have a from');
    if (sharing !== undefined) throw invalid('secret mount should not define sharing');
    if (source === '' && target === '' && id === '') {
      throw invalid('invalid secret mount. one of source, target required');
    }
    if (source !== '' && id !== '') throw invalid("both source and id can't be set");
  }
  if (sharing !== undefined && type !== 'cache') throw invalid(`invalid cache sharing set for ${type} mount`);
}

function setReadOnly(draft: Draft, isReadOnly: boolean): void {
  draft.isReadOnly = isReadOnly;
  draft.isReadOnlyGiven = true;
}

function refuseOther({ type }: Draft, key: string, allowed: readonly string[]): void {
  if (!allowed.includes(type)) throw invalid(`unexpected key '${key}' for mount type '${type}'`);
}

function oneOf(known: readonly string[], what: string, value: string): string {
  const lower = value.toLowerCase();
  if (known.includes(lower)) return lower;
  throw invalid(withSuggestion(`unsupported ${what} ${quote(value)}`, value, known));
}

function booleanOf(key: string, value: string): boolean {
  const parsed = parseBoolean(value);
  if (parsed === undefined) throw invalid(`invalid value for ${key}: ${value}`);
  return parsed;
}

function numberOf(key: 'mode' | 'uid' | 'gid', value: string): number {
  const base = key === 'mode' ? 8 : 10;
  const parsed = (base === 8 ? /^[0-7]+$/ : /^\d+$/).test(value) ? Number.parseInt(value, base) : Infinity;
  if (parsed > MAX_ID) throw invalid(`invalid value ${value} for ${key}`);
  return parsed;
}

function split(field: string): { key: string; value: string | undefined } {
  const equals = field.indexOf('=');
  if (equals < 0) return { key: field.toLowerCase(), value: undefined };
  return { key: field.slice(0, equals).toLowerCase(), value: field.slice(equals + 1) };
}

/** The fields of a line of comma-separated values; one in double quotes may have commas. */
function fieldsOf(written: string): string[] {
  if (!written.includes('"')) return written.split(',');
  const fields: string[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (let end = ','; end === ',';) {
    const [whole, quoted, plain = '', separator = ''] = field.exec(written) ?? [];
    if (whole === undefined) throw invalid(`failed to parse csv mounts: unexpected quotes in ${written}`);
    fields.push(quoted?.replaceAll('""', '"') ?? plain);
    end = separator;
  }
  return fields;
}

/** `64m`, `1.5g`: with a unit of 1024. */
function ramBytes(value: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,12}(?:\.\d{0,6})?) ?([kmgtp]?)(?:i?b)?$/i.exec(value) ?? [];
  if (digits === undefined) return undefined;
  return Math.floor(Number(digits) * 1024 ** ' kmgtp'.indexOf(unit.toLowerCase() || ' '));
}

function invalid(message: string): EngineError {
  return new EngineError('invalid', message);
}

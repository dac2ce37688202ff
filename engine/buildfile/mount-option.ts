import { EngineError } from '../lib/errors.ts';
import { parseBoolean } from '../lib/notations/boolean.ts';

/** A `--mount` of RUN. */
export type MountOption = Readonly<{
  type: 'bind' | 'cache' | 'tmpfs' | 'secret' | 'ssh';
  target: string;
  source: string;
  /** A stage or an image; empty for the context. */
  from: string;
  id: string;
  isReadOnly: boolean;
  isRequired: boolean;
  /** Undefined: `shared`. */
  sharing: 'shared' | 'private' | 'locked' | undefined;
  mode: number | undefined;
  uid: number | undefined;
  gid: number | undefined;
  /** Size of a tmpfs. */
  sizeBytes: number | undefined;
  /** Variable with the content of a secret. */
  env: string | undefined;
}>;

/** A mount without any option. */
export const NO_MOUNT: MountOption = {
  type: 'bind',
  target: '',
  source: '',
  from: '',
  id: '',
  isReadOnly: false,
  isRequired: false,
  sharing: undefined,
  mode: undefined,
  uid: undefined,
  gid: undefined,
  sizeBytes: undefined,
  env: undefined,
};

type Draft = { -readonly [Key in keyof MountOption]: MountOption[Key] } & { type: Type };
type Type = Exclude<MountOption['type'], 'ssh'>;

const TYPES: readonly string[] = ['bind', 'cache', 'tmpfs', 'secret'];
const SHARINGS: readonly string[] = ['shared', 'private', 'locked'];
const KEYS: Readonly<Record<string, (draft: Draft, value: string, key: string) => void>> = {
  target: (draft, value) => (draft.target = value),
  source: (draft, value) => (draft.source = value),
  from: (draft, value) => (draft.from = value),
  id: (draft, value) => (draft.id = value),
  readonly: (draft, value, key) => (draft.isReadOnly = boolean(key, value)),
  readwrite: (draft, value, key) => (draft.isReadOnly = !boolean(key, value)),
  required: (draft, value, key) => (draft.isRequired = boolean(key, value)),
  sharing(draft, value) {
    if (!SHARINGS.includes(value)) throw invalid(`unsupported sharing value ${JSON.stringify(value)}`);
    draft.sharing = value as Draft['sharing'];
  },
  mode: (draft, value, key) => (draft.mode = number(key, value, 8)),
  uid: (draft, value, key) => (draft.uid = number(key, value, 10)),
  gid: (draft, value, key) => (draft.gid = number(key, value, 10)),
  size: (draft, value) => (draft.sizeBytes = bytes(value)),
};
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['dst', 'target'],
  ['destination', 'target'],
  ['src', 'source'],
  ['ro', 'readonly'],
  ['rw', 'readwrite'],
]);
const ALLOWED: Readonly<Record<Type, readonly string[]>> = {
  bind: ['target', 'source', 'from', 'readonly', 'readwrite'],
  cache: ['target', 'id', 'readonly', 'readwrite', 'sharing', 'mode', 'uid', 'gid'],
  tmpfs: ['target', 'size'],
  secret: ['target', 'source', 'id', 'required', 'mode', 'uid', 'gid'],
};

/** Reads `type=cache,target=/root/.cache` for the classic builder. Throws `invalid`, naming an unknown key. */
export function mountOption(written: string): MountOption {
  const fields = written.split(',').map((field) => {
    const equals = field.indexOf('=');
    const key = (equals < 0 ? field : field.slice(0, equals)).trim().toLowerCase();
    return [OTHER_NAMES.get(key) ?? key, equals < 0 ? 'true' : field.slice(equals + 1)] as const;
  });
  const type = fields.find(([key]) => key === 'type')?.[1] ?? 'bind';
  if (!TYPES.includes(type)) throw invalid(`unsupported mount type ${JSON.stringify(type)}`);
  const draft = emptyOf(type as Type);
  for (const [key, value] of fields) {
    if (key === 'type') continue;
    if (!Object.hasOwn(KEYS, key)) throw invalid(`unexpected key '${key}' in '${key}=${value}'`);
    if (!ALLOWED[draft.type].includes(key)) throw invalid(`unexpected key '${key}' for mount type '${type}'`);
    KEYS[key]!(draft, value, key);
  }
  if (draft.type === 'secret') completeSecret(draft);
  else if (draft.target === '') throw invalid(`invalid mount: ${type} needs a target`);
  return draft;
}

function emptyOf(type: Type): Draft {
  return { ...NO_MOUNT, type, isReadOnly: type === 'bind' || type === 'secret' };
}

/** The default of its id is the last part of its path; the default of its path is below /run/secrets. */
function completeSecret(draft: Draft): void {
  draft.id = draft.id || draft.source || (draft.target.split('/').at(-1) ?? '');
  if (draft.id === '') throw invalid('invalid mount: secret needs an id or a target');
  draft.target ||= `/run/secrets/${draft.id}`;
}

function boolean(key: string, value: string): boolean {
  const parsed = parseBoolean(value);
  if (parsed === undefined) throw invalid(`invalid value for ${key}: ${value}`);
  return parsed;
}

function number(key: string, value: string, base: 8 | 10): number {
  if (!(base === 8 ? /^[0-7]{1,7}$/ : /^\d{1,10}$/).test(value)) throw invalid(`invalid value ${value} for ${key}`);
  return Number.parseInt(value, base);
}

/** `64m`: with a unit of 1024. */
function bytes(value: string): number {
  const [, digits, unit = ''] = /^(\d{1,12})([kmgt]?)b?$/i.exec(value) ?? [];
  if (digits === undefined) throw invalid(`invalid value for size: ${value}`);
  return Number(digits) * 1024 ** ' kmgt'.indexOf(unit.toLowerCase() || ' ');
}

function invalid(message: string): EngineError {
  return new EngineError('invalid', message);
}

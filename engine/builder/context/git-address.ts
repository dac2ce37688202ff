import type { Dialect } from '../../buildfile/dialect.ts';
import { EngineError } from '../../lib/errors.ts';
import { parseBoolean } from '../../lib/notations/boolean.ts';

/** A repository, and the part of it that is wanted. */
export type GitAddress = Readonly<{
  url: string;
  ref: string;
  folder: string;
  /** Id of the commit, or the beginning of it; empty for any. */
  checksum: string;
  /** Undefined: the address does not say it. */
  keepsGitFolder: boolean | undefined;
  submodules: boolean;
  /** It cannot be the path of a file, as `github.com/a/b` can. */
  isDistinct: boolean;
}>;

type Draft = { -readonly [Key in keyof GitAddress]: GitAddress[Key] };

const CLASSIC = /^https?:\/\/[^#]*\.git(?:#|$)|^(?:git:\/\/|github\.com\/|git@)/i;
const BUILDKIT = /^https?:\/\/[^#?]*\.git(?:[#?]|$)|^(?:git:\/\/|ssh:\/\/|github\.com\/|[\w.-]+@[\w.-]+:)/i;

/**
 * Reads `address#ref:folder`, and in BuildKit's dialect `address?ref=…&subdir=…` too. Undefined for anything but the address of
 * a repository. Throws `invalid`.
 */
export function gitAddress(remote: string, dialect: Dialect): GitAddress | undefined {
  const isGit = (dialect === 'classic' ? CLASSIC : BUILDKIT).test(remote);
  if (!isGit) return undefined;
  const [whole = '', fragment = ''] = remote.split(/#(.*)/s, 2);
  const [ref = '', folder = ''] = fragment.split(/:(.*)/s, 2);
  const [address = '', query = ''] = dialect === 'classic' ? [whole] : whole.split(/\?(.*)/s, 2);
  if (/^(?:ssh:|[^/:]+@)/i.test(address)) {
    throw new EngineError('invalid', `unable to clone ${address}: only http, https and git are supported`);
  }
  const isDistinct = !address.startsWith('github.com/');
  const draft: Draft = {
    url: isDistinct ? address : `https://${address}`,
    ref,
    folder,
    checksum: '',
    keepsGitFolder: undefined,
    submodules: true,
    isDistinct,
  };
  takeQuery(draft, query);
  // The name must not be read as an option of git.
  if (draft.ref.startsWith('-')) throw new EngineError('invalid', `invalid refspec: ${draft.ref}`);
  return { ...draft, ref: draft.ref || 'HEAD' };
}

function takeQuery(draft: Draft, query: string): void {
  const seen = new Set<string>();
  for (const [key, value] of new URLSearchParams(query)) {
    if (seen.has(key)) throw new EngineError('invalid', `query ${JSON.stringify(key)} has multiple values`);
    seen.add(key);
    takeParameter(draft, key, value);
  }
}

function takeParameter(draft: Draft, key: string, value: string): void {
  switch (key) {
    case 'keep-git-dir':
      draft.keepsGitFolder = booleanOf(key, value);
      return;
    case 'submodules':
      draft.submodules = booleanOf(key, value);
      return;
    case 'ref':
    case 'tag':
    case 'branch':
      setRef(draft, prefixed(key, required(key, value)));
      return;
    case 'subdir':
      if (draft.folder !== '' && draft.folder !== required(key, value)) {
        throw new EngineError(
          'invalid',
          `subdir conflicts: ${JSON.stringify(draft.folder)} vs ${JSON.stringify(value)}`,
        );
      }
      draft.folder = value;
      return;
    case 'checksum':
    case 'commit':
      draft.checksum = required(key, value);
      return;
    default:
      throw new EngineError('invalid', `unexpected query ${JSON.stringify(key)}`);
  }
}

function setRef(draft: Draft, ref: string): void {
  if (draft.ref !== '' && draft.ref !== ref) {
    throw new EngineError('invalid', `ref conflicts: ${JSON.stringify(draft.ref)} vs ${JSON.stringify(ref)}`);
  }
  draft.ref = ref;
}

function prefixed(key: string, value: string): string {
  if (key === 'ref') return value;
  const prefix = key === 'tag' ? 'refs/tags/' : 'refs/heads/';
  return value.startsWith(prefix) ? value : `${prefix}${value}`;
}

function required(key: string, value: string): string {
  if (value !== '') return value;
  throw new EngineError('invalid', `query ${JSON.stringify(key)} has no value`);
}

/** A key without a value is true. */
function booleanOf(key: string, value: string): boolean {
  const parsed = value === '' ? true : parseBoolean(value);
  if (parsed === undefined) throw new EngineError('invalid', `invalid ${key} value: ${JSON.stringify(value)}`);
  return parsed;
}

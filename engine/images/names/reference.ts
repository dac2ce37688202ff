import { EngineError } from '../../lib/errors.ts';

/** A parsed image name. `repository` is complete: `docker.io/library/busybox`. */
export type Reference = Readonly<{ repository: string; tag?: string; digest?: string }>;

const DEFAULT_HOST = 'docker.io';
const OLD_DEFAULT_HOST = 'index.docker.io';
const OFFICIAL = 'library/';
const NAME_BYTES = 255;

const HOST =
  /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?$/;
const PATH_PART = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const BARE_ID = /^[0-9a-f]{64}$/;

/** Parses `[host[:port]/]path[:tag][@digest]`, and completes it with the default registry. */
export function parseReference(text: string): Reference {
  const at = text.indexOf('@');
  const digest = at < 0 ? undefined : text.slice(at + 1);
  if (digest !== undefined && !DIGEST.test(digest)) throw invalid();
  const named = at < 0 ? text : text.slice(0, at);
  const colon = named.lastIndexOf(':');
  const tag = colon > named.lastIndexOf('/') ? named.slice(colon + 1) : undefined;
  if (tag !== undefined && !TAG.test(tag)) throw invalid();
  return { repository: parseRepository(tag === undefined ? named : named.slice(0, colon)), tag, digest };
}

/** A name that an image shall get: `tag` replaces a tag or digest in `repo`. */
export function parseRepoAndTag(repo: string, tag = ''): Reference {
  const reference = parseReference(repo);
  refuseAmbiguous(reference);
  if (tag !== '') {
    if (!TAG.test(tag)) throw new EngineError('invalid', 'invalid tag format');
    return { repository: reference.repository, tag };
  }
  if (reference.digest !== undefined) {
    throw new EngineError('invalid', 'refusing to create a tag with a digest reference');
  }
  return withDefaultTag(reference);
}

/** Throws `invalid` for a name of an image that reads like an id, such as `sha256:abc`. */
export function refuseAmbiguous({ repository }: Reference): void {
  if (familiarName(repository) !== 'sha256') return;
  throw new EngineError('invalid', 'refusing to create an ambiguous tag using digest algorithm as name');
}

/** Parses the name of an import, whose digest is not known yet. Undefined without a name. */
export function parseImportName(repo = '', tag?: string): Reference | undefined {
  if (repo === '') return undefined;
  if (parseReference(repo).digest !== undefined) throw new EngineError('invalid', 'cannot import digest reference');
  return parseRepoAndTag(repo, tag);
}

/** A bare name means its tag `latest`. */
export function withDefaultTag(reference: Reference): Reference {
  if (reference.tag !== undefined || reference.digest !== undefined) return reference;
  return { ...reference, tag: 'latest' };
}

/** The short form, without the default registry. */
export function familiarName(repository: string): string {
  if (!repository.startsWith(`${DEFAULT_HOST}/`)) return repository;
  const path = repository.slice(DEFAULT_HOST.length + 1);
  return path.startsWith(OFFICIAL) && !path.slice(OFFICIAL.length).includes('/') ? path.slice(OFFICIAL.length) : path;
}

/** The registry of a repository, and its path there. */
export function hostAndPath(repository: string): { host: string; path: string } {
  const slash = repository.indexOf('/');
  return { host: repository.slice(0, slash), path: repository.slice(slash + 1) };
}

/** The reference of a pull: a tag or digest beside the name replaces that in the name. Without any, all tags. */
export function parsePulled(name: string, tag = ''): Reference {
  const reference = parseReference(name);
  if (tag === '') return reference;
  if (tag.startsWith('sha256:')) {
    if (!DIGEST.test(tag)) throw new EngineError('invalid', 'invalid tag format');
    return { ...reference, digest: tag };
  }
  if (!TAG.test(tag)) throw new EngineError('invalid', 'invalid tag format');
  return { ...reference, tag };
}

/** The whole reference in its short form. */
export function familiarReference({ repository, tag, digest }: Reference): string {
  const tagged = tag === undefined ? familiarName(repository) : `${familiarName(repository)}:${tag}`;
  return digest === undefined ? tagged : `${tagged}@${digest}`;
}

function parseRepository(name: string): string {
  if (BARE_ID.test(name)) {
    throw new EngineError('invalid', `invalid repository name (${name}), cannot specify 64-byte hexadecimal strings`);
  }
  const slash = name.indexOf('/');
  const first = name.slice(0, Math.max(slash, 0));
  // The first part is a host when it cannot be anything else.
  const hasHost = slash >= 0 && (/[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase());
  const host = hasHost && first !== OLD_DEFAULT_HOST ? first : DEFAULT_HOST;
  const given = hasHost ? name.slice(slash + 1) : name;
  if (given !== given.toLowerCase()) throw invalid(': repository name must be lowercase');
  if (!HOST.test(host) || !given.split('/').every((part) => PATH_PART.test(part))) throw invalid();
  const path = host === DEFAULT_HOST && !given.includes('/') ? `${OFFICIAL}${given}` : given;
  if (given.length > NAME_BYTES) throw invalid(`: repository name must not be more than ${NAME_BYTES} characters`);
  return `${host}/${path}`;
}

function invalid(why = ''): EngineError {
  return new EngineError('invalid', `invalid reference format${why}`);
}

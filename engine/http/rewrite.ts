import { ENDPOINTS } from './endpoints.ts';

const NEWEST = 24;
const OLDEST = 12;
const VERSION_PREFIX = /^\/v([\d.]+)(\/.*)?$/;
/** What stands before and after a name that may have slashes. */
const PLACES = ENDPOINTS.filter(({ slashes }) => slashes).map(({ method, path }) => {
  const [before = '', after = ''] = path.split(/\{\w+\}/);
  return { method, before, after };
});

/** A path that no route has: its error says which versions there are. */
export const UNSUPPORTED = '/unsupported-version/';

/**
 * A request's URL as the routes know it: without the version, and with names that carry slashes (images, aliases,
 * plugins) as one encoded part.
 */
export function rewriteUrl(method: string, url: string): string {
  const [path, query] = splitOnce(url, '?');
  if (path.startsWith(UNSUPPORTED)) return '/';
  const rewritten = encodeNames(method, withoutVersion(path));
  return query === undefined ? rewritten : `${rewritten}?${query}`;
}

/** Whether the client named a version in the URL that it sent. */
export function hasVersion(url: string): boolean {
  return VERSION_PREFIX.test(url);
}

/** The refusal of a version, in the words of dockerd. */
export function versionRefusal(version: string): string {
  return isNewer(version)
    ? `client version ${version} is too new. Maximum supported API version is 1.${NEWEST}`
    : `client version ${version} is too old. Minimum supported API version is 1.${OLDEST}, please upgrade your client to a newer version`;
}

function withoutVersion(path: string): string {
  const match = VERSION_PREFIX.exec(path);
  if (match === null) return path;
  const [, version = '', rest = '/'] = match;
  const [major, minor = 0, ...more] = version.split('.').map(Number);
  const supported = major === 1 && minor >= OLDEST && minor <= NEWEST && more.length === 0;
  return supported ? rest : `${UNSUPPORTED}${version}`;
}

/** Also where there are more parts than two: `1.24.1` is newer than 1.24. */
function isNewer(version: string): boolean {
  const [major = 0, minor = 0, ...more] = version.split('.').map(Number);
  return major > 1 || (major === 1 && (minor > NEWEST || (minor === NEWEST && more.length > 0)));
}

/** Names with slashes become one encoded part. */
function encodeNames(method: string, path: string): string {
  // Newer clients ask for `/plugins/x/json`: there is no such path yet, and nothing that is called `x/json`.
  if (path.startsWith('/plugins/') && path.endsWith('/json')) return path;
  const place = PLACES.find(
    ({ method: of, before, after }) =>
      of === method && path.length > before.length + after.length && path.startsWith(before) && path.endsWith(after),
  );
  if (place === undefined) return path;
  const { before, after } = place;
  return before + encode(path.slice(before.length, path.length - after.length)) + after;
}

/** Encoded once, also when the client did it already. */
function encode(name: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(name));
  } catch (error) {
    if (error instanceof URIError) return name; // the router refuses it
    throw error;
  }
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

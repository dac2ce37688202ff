const NEWEST = 24;
const OLDEST = 12;
const FIXED_IMAGE_PATHS = new Set(['json', 'create', 'load', 'search', 'get']);
const VERSION_PREFIX = /^\/v([\d.]+)(\/.*)?$/;
const IMAGE_ACTIONS = /^(.+)\/(json|history|get|push|tag)$/;

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

function encodeNames(method: string, path: string): string {
  if (path.startsWith('/images/')) return encodeImage(method, path.slice('/images/'.length));
  if (path.startsWith('/plugins/')) return encodePlugin(path.slice('/plugins/'.length));
  // `DELETE /containers/parent/alias?link=1`
  if (method === 'DELETE' && path.startsWith('/containers/'))
    return `/containers/${encode(path.slice('/containers/'.length))}`;
  return path;
}

function encodeImage(method: string, rest: string): string {
  if (FIXED_IMAGE_PATHS.has(rest) && method !== 'DELETE') return `/images/${rest}`;
  const action = method === 'DELETE' ? null : IMAGE_ACTIONS.exec(rest);
  return action === null ? `/images/${encode(rest)}` : `/images/${encode(action[1]!)}/${action[2]}`;
}

function encodePlugin(rest: string): string {
  // Newer clients ask for `/plugins/x/json`: there is no such path yet, and nothing that is called `x/json`.
  if (rest === 'pull' || rest.endsWith('/json')) return `/plugins/${rest}`;
  const action = /^(.+)\/(enable|disable)$/.exec(rest);
  return action === null ? `/plugins/${encode(rest)}` : `/plugins/${encode(action[1]!)}/${action[2]}`;
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

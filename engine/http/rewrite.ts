import { posix } from 'node:path';

import { ENDPOINTS } from './description/endpoints.ts';
import { isSupported, splitVersion, type ApiVersions } from './versions/api-version.ts';

/** The parts of a path before and after a name that may contain slashes, the longest first: `/plugins/a/json` is not `a/json`. */
const PLACES = ENDPOINTS.filter(({ slashes }) => slashes)
  .map(({ method, path }) => {
    const [before = '', after = ''] = path.split(/\{\w+\}/);
    return { method, before, after };
  })
  .toSorted((a, b) => b.after.length - a.after.length);

/** A path without a route: its error names the supported versions. */
export const UNSUPPORTED = '/unsupported-version/';

/** A path without a route, before the clean one: its answer is a redirection. */
export const UNCLEAN = '/unclean-path';

/**
 * A request's URL for the router: without the version, and with names that contain slashes (images, aliases, plugins)
 * as one encoded part.
 */
export function rewriteUrl(method: string, url: string, versions: ApiVersions): string {
  const [written, query] = splitOnce(url, '?');
  const path = written.replaceAll(/%2e/gi, '.');
  if (path.startsWith(UNSUPPORTED) || path.startsWith(UNCLEAN)) return '/';
  if (/\/\/|\/\.{1,2}(\/|$)/.test(path))
    return `${UNCLEAN}${posix.normalize(path)}${query === undefined ? '' : `?${query}`}`;
  const plain = withoutVersion(path, versions);
  const rewritten = plain === '/networks/' ? '/networks' : encodeNames(method, plain);
  return query === undefined ? rewritten : `${rewritten}?${query}`;
}

function withoutVersion(path: string, versions: ApiVersions): string {
  const { written, path: rest } = splitVersion(path);
  return written === undefined || isSupported(written, versions) ? rest : `${UNSUPPORTED}${written}`;
}

/** Names with slashes become one encoded part. */
function encodeNames(method: string, path: string): string {
  const place = PLACES.find(
    ({ method: of, before, after }) =>
      of === method && path.length > before.length + after.length && path.startsWith(before) && path.endsWith(after),
  );
  if (place === undefined) return path;
  const { before, after } = place;
  return before + encode(path.slice(before.length, path.length - after.length)) + after;
}

/** Encoded once, even if the client has encoded it already. */
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

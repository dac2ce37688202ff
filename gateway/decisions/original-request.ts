import type { IncomingHttpHeaders } from 'node:http';

export const DECIDE_PATH = '/decide';

/** Headers in which proxies send the path and the method of the request that they ask about. */
const PATH_HEADERS = ['x-original-uri', 'x-original-url', 'x-forwarded-uri'];
const METHOD_HEADERS = ['x-original-method', 'x-forwarded-method'];

const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/;

/** A request as the proxy has received it. */
export type OriginalRequest = Readonly<{ method: string; url: string }>;

type Question = Readonly<{ method: string; url: string; headers: IncomingHttpHeaders }>;

/**
 * The request that a proxy asks about: `/decide` names it in headers (nginx, Traefik, Caddy), `/decide/its/path` itself
 * (Envoy). `problem`: the proxy is not set up for it.
 *
 * Two headers that differ are refused: one of them may be its client's.
 */
export function originalRequest({
  method,
  url,
  headers,
}: Question): OriginalRequest | Readonly<{ problem: string }> | undefined {
  if (!url.startsWith(DECIDE_PATH)) return undefined;
  const rest = url.slice(DECIDE_PATH.length);
  if (rest.startsWith('/')) return { method, url: rest };
  if (rest !== '' && !rest.startsWith('?')) return undefined;
  const path = theOnlyOne(headers, PATH_HEADERS, pathOf);
  const verb = theOnlyOne(headers, METHOD_HEADERS, (value) => value);
  if (path === undefined) return missing('path', PATH_HEADERS);
  if (verb === undefined || (verb !== null && !METHOD.test(verb))) return missing('method', METHOD_HEADERS);
  if (path === null || verb === null) return { problem: 'Two headers of the proxy name different requests.' };
  return { method: verb, url: path };
}

/** The value that all of these headers have; null: they differ. */
function theOnlyOne(
  headers: IncomingHttpHeaders,
  names: readonly string[],
  read: (value: string) => string,
): string | null | undefined {
  const values = names.flatMap((name) => (headers[name] === undefined ? [] : [read(String(headers[name]))]));
  return values.every((value) => value === values[0]) ? values[0] : null;
}

/** Path and query of `http://host/path?query`, as nginx's ingress sends it. */
function pathOf(value: string): string {
  const absolute = /^https?:\/\/[^/?#]*(.*)$/i.exec(value);
  if (absolute === null) return value;
  return absolute[1]!.startsWith('/') ? absolute[1]! : `/${absolute[1]}`;
}

function missing(part: string, names: readonly string[]): Readonly<{ problem: string }> {
  return { problem: `The ${part} of the request is expected in ${names.join(', ')}.` };
}

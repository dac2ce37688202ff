import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

import type { ShownStatus } from '@gantry/limiter/types.ts';

import { peerOf } from '../connections/peer.ts';
import type { Exchange } from '../exchange.ts';
import { exposeLimits, isOwnCors } from './cors.ts';
import { fateOf, HOP_BY_HOP } from './header-fates.ts';

/** The fields of draft-ietf-httpapi-ratelimit-headers; the upstream's would contradict the gateway's limits. */
const IETF_HEADERS = new Set(['ratelimit', 'ratelimit-policy']);
const NOT_IN_TRAILERS = new Set(['content-length', 'retry-after']);

/** The request's headers for the upstream: name, value, name, value. */
export function requestHeaders({ req, policy, target, address }: Exchange): string[] {
  const { rawHeaders } = req;
  const peer = peerOf(req);
  const trusted = policy.trusted.trusts(peer);
  const named = namedByConnection(req.headers.connection);
  const seen: string[] = [];
  const headers: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    const { fate, lower, spelled } = fateOf(name);
    if (fate === 'drop' || (fate === 'trusted' && !trusted) || named?.has(lower) === true) continue;
    if (fate === 'alias' && policy.credentials.isHeader(spelled)) continue;
    if (fate === 'once') {
      if (seen.includes(lower)) continue;
      seen.push(lower);
    }
    headers.push(name, lower === 'host' ? (target.authority ?? rawHeaders[at + 1]!) : rawHeaders[at + 1]!);
  }
  const host = target.authority ?? req.headers.host;
  const before = trusted && policy.trusted.usesList ? req.headers['x-forwarded-for'] : undefined;
  const chain = before ?? (address === peer ? undefined : address);
  headers.push('x-forwarded-for', chain === undefined ? peer : `${String(chain)}, ${peer}`);
  if (!trusted || req.headers['x-forwarded-proto'] === undefined) {
    headers.push('x-forwarded-proto', (req.socket as TLSSocket).encrypted ? 'https' : 'http');
  }
  if ((!trusted || req.headers['x-forwarded-host'] === undefined) && host !== undefined) {
    headers.push('x-forwarded-host', host);
  }
  return headers;
}

export function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return length === undefined ? req.headers['transfer-encoding'] !== undefined : length !== '0';
}

/** The upstream's headers for the client, the rate limit's in the place of its own. */
export function responseHeaders(
  status: number,
  headers: IncomingHttpHeaders,
  exchange: Pick<Exchange, 'decision' | 'shown' | 'policy' | 'req' | 'gateway'>,
): string[] {
  const { decision, shown = decision, policy } = exchange;
  const { connection } = headers;
  const named = namedByConnection(connection);
  const passed: string[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || HOP_BY_HOP.has(name) || named?.has(name) === true) continue;
    if (shown !== undefined && isAboutLimits(name)) continue;
    if (isOwnCors(name, policy) || policy.cost.isHeader(name)) continue;
    if (status === 204 && name === 'content-length') continue; // there is no content to have a length
    if (typeof value === 'string') passed.push(name, value);
    else for (const each of value) passed.push(name, each);
  }
  if (shown !== undefined) pushRateHeaders(passed, shown);
  exposeLimits(passed, headers, exchange);
  return passed;
}

/** Whether only the gateway may say it; `name` in lower case. */
export function isAboutLimits(name: string): boolean {
  return name.startsWith('x-ratelimit-') || IETF_HEADERS.has(name);
}

/** The trailers that may follow the body: none that belong into the head, and none about the limits. */
export function responseTrailers(trailers: IncomingHttpHeaders): Record<string, string | string[]> {
  const passed: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(trailers)) {
    const isOurs = HOP_BY_HOP.has(name) || isAboutLimits(name) || NOT_IN_TRAILERS.has(name);
    if (value !== undefined && !isOurs) passed[name] = value;
  }
  return passed;
}

/** Appends the headers of `headersOf` (limiter) to a list. */
export function pushRateHeaders(headers: string[], shown: ShownStatus): void {
  headers.push(
    'x-ratelimit-limit',
    String(shown.limit),
    'x-ratelimit-remaining',
    String(shown.remaining),
    'x-ratelimit-used',
    String(shown.used),
    'x-ratelimit-reset',
    String(shown.reset),
    'x-ratelimit-resource',
    shown.resource,
  );
}

function namedByConnection(connection: string | undefined): Set<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
}

import { answer } from '../answer.ts';
import type { Exchange } from '../exchange.ts';

const PREFLIGHT_MAX_AGE_SECONDS = 86_400;
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';
const HEADER_NAMES = /^[A-Za-z0-9!#$%&'*+.^_`|~, -]*$/;

/** A browser asks whether a page of another origin may send a request. */
export function isPreflight({ method, headers }: Exchange['req']): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

/** Answers a preflight where the policy is the gateway's own: pages of all origins may send any request. */
export function answerPreflight(exchange: Exchange): void {
  const { headers } = exchange.req;
  const asked = headers['access-control-request-headers'] ?? '';
  const allowed = ['access-control-allow-methods', METHODS];
  // A wildcard does not stand for Authorization.
  if (asked !== '' && HEADER_NAMES.test(asked)) allowed.push('access-control-allow-headers', asked);
  allowed.push('access-control-max-age', String(PREFLIGHT_MAX_AGE_SECONDS), 'vary', 'Access-Control-Request-Headers');
  answer(exchange, { status: 204, headers: allowed, body: '' });
}

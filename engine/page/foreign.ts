import type { IncomingMessage } from 'node:http';

const LOOPBACK_HOST = /^(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d{1,5})?$/i;

/**
 * The reason to refuse a request to the page's port; undefined: none. A foreign page makes a browser send requests by a
 * name of its own that it points at this address, or to the address itself; a browser tells its origin with each request
 * that can change something and with each WebSocket. Over TLS the browser compares the name with the certificate.
 */
export function foreign(
  { headers, headersDistinct, method }: IncomingMessage,
  scheme: 'http' | 'https',
): string | undefined {
  const { host = '', origin, upgrade } = headers;
  if (headersDistinct.host?.length !== 1) return 'the header Host is missing, or there are several';
  if (scheme === 'http' && !LOOPBACK_HOST.test(host)) return 'the page is served as 127.0.0.1, [::1] or localhost';
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'pages of other origins are refused';
  const needsOrigin = upgrade !== undefined || (method !== 'GET' && method !== 'HEAD');
  if (origin === undefined) return needsOrigin ? 'the header Origin is missing' : undefined;
  return origin.toLowerCase() === `${scheme}://${host.toLowerCase()}`
    ? undefined
    : 'pages of other origins are refused';
}

import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';

import { isLoopback } from '../identity/address.ts';

/**
 * Why a request to the page's port is refused: it comes from another site, or uses another site's name for this address.
 * Browsers send both; any other client is on this machine. Undefined: it is not refused.
 */
export function foreign(headers: IncomingHttpHeaders, port: number): string | undefined {
  const { host = '', origin } = headers;
  const name = new RegExp(`^(.*):${port}$`).exec(host)?.[1] ?? (port === 80 ? host : '');
  if (!isLoopback(name)) return `Host may be 127.0.0.1:${port}, [::1]:${port} or localhost:${port}`;
  if (origin !== undefined && origin !== `http://${host}`) return 'requests of other sites are not answered';
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    return 'requests of other sites are not answered';
  return undefined;
}

/**
 * The reason to refuse a request to the port of the metrics: a page of another site makes a browser send it, by a name of
 * its own that it points at this address. `listening`: the host that the settings name. Undefined: none.
 */
export function foreignName({ host }: IncomingHttpHeaders, listening: string): string | undefined {
  if (host === undefined) return undefined; // no browser
  const name = host.replace(/:\d*$/, '').toLowerCase();
  if (isLoopback(name)) return undefined;
  if (isLoopback(listening)) return 'Host may be 127.0.0.1, [::1] or localhost';
  const isAddress = isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0;
  // No other site has a name without a dot.
  if (isAddress || !name.includes('.') || name === hostname().toLowerCase() || name === listening.toLowerCase()) {
    return undefined;
  }
  return `Host may be an address, ${hostname()}, or the name in admin.metrics`;
}

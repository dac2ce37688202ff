import type { IncomingMessage, RequestListener } from 'node:http';
import { isIP } from 'node:net';

import { isLoopback } from '../../config/hosts.ts';
import { EngineError } from '../../lib/errors.ts';

/** The local address of a request over TCP without TLS. */
const addresses = new WeakMap<IncomingMessage, string>();

/** For a listener that a page in a browser on this machine could reach. */
export function overPlainTcp(listener: RequestListener): RequestListener {
  return (request, response) => {
    // A closed connection has no address, and gets the strictest check.
    addresses.set(request, request.socket.localAddress?.replace(/^::ffff:/, '') ?? '127.0.0.1');
    listener(request, response);
  };
}

/**
 * The reason to refuse a request regardless of its path; undefined: none.
 *
 * A foreign page can make a browser on this machine send requests to a loopback address: by DNS rebinding, by a
 * WebSocket, or by a POST of plain text. Over TCP without TLS nothing else stops it. Clients that are not browsers send
 * no Origin, or that of the address.
 */
export function refusalOf(request: IncomingMessage, allowedOrigin: string): EngineError | undefined {
  const { host, origin } = request.headers;
  if (host === undefined && request.httpVersion === '1.1') return new EngineError('invalid', 'missing Host header');
  if ((request.headersDistinct.host?.length ?? 0) > 1) return new EngineError('invalid', 'too many Host headers');
  const address = addresses.get(request);
  if (address === undefined) return undefined;
  if (host !== undefined && isLoopback(address) && isForeign(host)) {
    return new EngineError('forbidden', `the host ${host} is not this machine: localhost or an address is expected`);
  }
  if (origin === undefined || allowedOrigin === '*' || origin === allowedOrigin) return undefined;
  if (host !== undefined && origin.toLowerCase() === `http://${host.toLowerCase()}`) return undefined;
  return new EngineError('forbidden', `pages of ${origin} are refused: see --api-cors-header`);
}

/** Whether the host is a name that foreign DNS may point here; an address is not. */
function isForeign(host: string): boolean {
  const [, address, name = ''] = /^(?:\[(.*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
  return isIP(address ?? name) === 0 && !/^(.*\.)?localhost\.?$/i.test(name) && host !== '';
}

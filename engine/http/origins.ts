import type { IncomingMessage, RequestListener } from 'node:http';
import { isIP } from 'node:net';

import { isLoopback } from '../config/hosts.ts';
import { EngineError } from '../lib/errors.ts';

/** To which of our addresses a request came, over TCP without TLS. */
const addresses = new WeakMap<IncomingMessage, string>();

/** For a listener that a page in a browser on this machine could reach. */
export function overPlainTcp(listener: RequestListener): RequestListener {
  return (request, response) => {
    // An address that is gone already is taken for the one that is guarded best.
    addresses.set(request, request.socket.localAddress?.replace(/^::ffff:/, '') ?? '127.0.0.1');
    listener(request, response);
  };
}

/**
 * What speaks against a request before anybody looks at its path; undefined: nothing.
 *
 * A page of somebody else can make a browser on this machine ask a loopback address: under a name of its own that now
 * leads there, by a WebSocket, or by a POST of plain text. Over TCP without TLS nothing else keeps it out. Clients that
 * are no browsers send no Origin, or that of the address which they ask.
 */
export function refusalOf(request: IncomingMessage, allowedOrigin: string): EngineError | undefined {
  const { host, origin } = request.headers;
  if (host === undefined && request.httpVersion === '1.1') return new EngineError('invalid', 'missing Host header');
  const address = addresses.get(request);
  if (address === undefined) return undefined;
  if (host !== undefined && isLoopback(address) && isForeign(host)) {
    return new EngineError(
      'forbidden',
      `the host ${host} is none of this machine: localhost or an address is expected`,
    );
  }
  if (origin === undefined || allowedOrigin === '*' || origin === allowedOrigin) return undefined;
  if (host !== undefined && origin.toLowerCase() === `http://${host.toLowerCase()}`) return undefined;
  return new EngineError('forbidden', `pages of ${origin} are not let in: see --api-cors-header`);
}

/** A name that somebody else's DNS may lead here; an address needs none. */
function isForeign(host: string): boolean {
  const [, address, name = ''] = /^(?:\[(.*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
  return isIP(address ?? name) === 0 && !/^(.*\.)?localhost\.?$/i.test(name) && host !== '';
}

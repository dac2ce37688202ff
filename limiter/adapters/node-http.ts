import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

import type { RateLimiter } from '../limiter.ts';
import { headersOf, refusalOf, type RefusalStyle } from '../present.ts';
import { callerFrom } from '../primary.ts';
import type { Caller, Endpoint } from '../types.ts';

export type HttpLimits = Readonly<{
  /** The endpoint of a request; endpoints are made once, with `limiter.endpoint`. */
  endpoint: (request: IncomingMessage) => Endpoint;
  /** The sender of a request. Default: its address. */
  caller?: (request: IncomingMessage) => Caller | Promise<Caller>;
  style?: RefusalStyle;
}>;

/** Puts limits before a handler of `node:http`: refused requests are answered here, others get the headers. */
export function limitHttp(limiter: RateLimiter, limits: HttpLimits, handler: RequestListener): RequestListener {
  const { endpoint, caller = byAddress, style } = limits;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const decision = await limiter.admit(await caller(request), endpoint(request));
    if (response.closed) return decision.end(0); // gone while it waited
    response.once('close', () => decision.end());
    if (decision.allowed) {
      decision.begin();
      response.setHeaders(new Map(Object.entries(headersOf(decision))));
      try {
        handler(request, response);
      } catch (error) {
        decision.end();
        throw error;
      }
      return;
    }
    const { status, statusText, headers, body } = refusalOf(decision, style);
    if (statusText === undefined) response.writeHead(status, headers);
    else response.writeHead(status, statusText, headers);
    response.end(body); // node:http leaves the body of an answer to HEAD out
  };
  return (request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.destroy();
      // As without limits: what `caller`, `endpoint` or the handler throws is uncaught.
      setImmediate(() => {
        throw error;
      });
    });
  };
}

function byAddress(request: IncomingMessage): Caller {
  return callerFrom({ kind: 'anonymous', address: request.socket.remoteAddress ?? '' });
}

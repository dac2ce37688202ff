import type { IncomingMessage, ServerResponse } from 'node:http';

import type { RateLimiter } from '../limiter.ts';
import { headersOf, refusalOf, type RefusalStyle } from '../present.ts';
import { callerFrom } from '../primary.ts';
import type { Caller, Endpoint, EndpointDefinition } from '../types.ts';

/** A request of Express, as far as it is read here; its own types fit. */
type ExpressRequest = IncomingMessage & Readonly<{ method: string; ip?: string | undefined; route?: unknown }>;

export type ExpressLimits<Request> = Readonly<{
  limiter: RateLimiter;
  /** Properties of the route for the limiter. Its name is the method and the route's template, unless it has one here. */
  limit?: Partial<EndpointDefinition>;
  /** The sender of a request. Default: its address, as Express's `trust proxy` finds it. */
  caller?: (request: Request) => Caller | Promise<Caller>;
  style?: RefusalStyle;
}>;

type Next = (error?: unknown) => void;

/**
 * A middleware of a route: `app.get('/hello', expressLimits({ limiter }), handler)`. In `app.use` no route is known yet: all
 * paths of a method are one endpoint.
 */
export function expressLimits<Request extends ExpressRequest>(
  limits: ExpressLimits<Request>,
): (request: Request, response: ServerResponse, next: Next) => Promise<void> {
  const { limiter, limit, caller = byAddress, style } = limits;
  const endpoints = new Map<string, Endpoint>();
  const endpointOf = ({ method, route }: Request): Endpoint => {
    const name = limit?.name ?? `${method} ${pathOf(route)}`;
    const endpoint = endpoints.get(name) ?? limiter.endpoint({ ...limit, name });
    endpoints.set(name, endpoint);
    return endpoint;
  };

  const answer = async (request: Request, response: ServerResponse): Promise<boolean> => {
    const decision = await limiter.admit(await caller(request), endpointOf(request));
    if (response.closed) decision.end(0); // gone while it waited
    else response.once('close', () => decision.end());
    if (decision.allowed) {
      decision.begin();
      response.setHeaders(new Map(Object.entries(headersOf(decision))));
      return true;
    }
    const { status, statusText, headers, body } = refusalOf(decision, style);
    if (statusText === undefined) response.writeHead(status, headers);
    else response.writeHead(status, statusText, headers);
    response.end(body); // without the body in answers to HEAD
    return false;
  };
  return async (request, response, next) => {
    let isAdmitted = false;
    try {
      isAdmitted = await answer(request, response);
    } catch (error) {
      return next(error);
    }
    if (isAdmitted) next();
  };
}

/** The template, which may be a pattern or a list; `*` where no route is known. */
function pathOf(route: unknown): string {
  return typeof route === 'object' && route !== null && 'path' in route ? String(route.path) : '*';
}

function byAddress({ ip, socket }: ExpressRequest): Caller {
  return callerFrom({ kind: 'anonymous', address: ip ?? socket.remoteAddress ?? '' });
}

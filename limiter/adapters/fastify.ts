import type { FastifyInstance, FastifyRequest } from 'fastify';

import type { RateLimiter } from '../limiter.ts';
import { headersOf, refusalOf, type RefusalStyle } from '../present.ts';
import { callerFrom } from '../primary.ts';
import type { Caller, Endpoint, EndpointDefinition } from '../types.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Properties of this route for the limiter, beside its name. */
    limit?: Omit<EndpointDefinition, 'name'>;
  }
}

export type FastifyLimits = Readonly<{
  limiter: RateLimiter;
  /** The sender of a request. Default: its address, as Fastify's `trustProxy` finds it. */
  caller?: (request: FastifyRequest) => Caller | Promise<Caller>;
  style?: RefusalStyle;
}>;

/** A Fastify plugin: `app.register(fastifyLimits, { limiter })`. Each route is an endpoint by its method and template. */
export async function fastifyLimits(app: FastifyInstance, limits: FastifyLimits): Promise<void> {
  const { limiter, caller = byAddress, style } = limits;
  const endpoints = new Map<string, Endpoint>();
  const endpointOf = ({ method, routeOptions }: FastifyRequest): Endpoint => {
    // Paths without a route are one endpoint: their number is unbounded.
    const name = `${method} ${routeOptions.url ?? '*'}`;
    const known = endpoints.get(name);
    if (known !== undefined) return known;
    const endpoint = limiter.endpoint({ ...routeOptions.config.limit, name });
    endpoints.set(name, endpoint);
    return endpoint;
  };

  app.addHook('onRequest', async (request, reply) => {
    const decision = await limiter.admit(await caller(request), endpointOf(request));
    if (reply.raw.closed) decision.end(0); // gone while it waited
    else reply.raw.once('close', () => decision.end());
    if (decision.allowed) {
      decision.begin();
      reply.headers(headersOf(decision));
      return;
    }
    const { status, statusText, headers, body } = refusalOf(decision, style);
    if (statusText !== undefined) reply.raw.statusMessage = statusText;
    return await reply.code(status).headers(headers).send(body);
  });
}

// Without this the hook would see only the routes of its own plugin.
Object.assign(fastifyLimits, { [Symbol.for('skip-override')]: true });

function byAddress(request: FastifyRequest): Caller {
  return callerFrom({ kind: 'anonymous', address: request.ip });
}

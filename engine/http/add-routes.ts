import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyInstance, onRequestHookHandler, RouteHandlerMethod } from 'fastify';

import { EngineError } from '../lib/errors.ts';
import { endpointOf, type Endpoint } from './endpoints.ts';
import { addMissingRoutes } from './missing-routes.ts';
import { describeRoutes, type RouteDescription } from './openapi.ts';
import { isBelow, type ApiVersion } from './versions/api-version.ts';
import { addSteps } from './versions/steps.ts';

/** The domains' routes, each with its row of the table; an endpoint without a route says that it is not built yet. */
export async function addRoutes(
  http: FastifyInstance,
  plugins: readonly FastifyPluginAsyncTypebox[],
  endpoints: readonly Endpoint[],
): Promise<void> {
  const built: RouteDescription[] = [];
  http.get('/openapi.json', ({ apiVersion }) => describeRoutes(described, apiVersion));
  http.addHook('onRoute', (route) => {
    const endpoint = endpointOf(endpoints, route.method, route.url);
    if (endpoint === undefined)
      throw new Error(`${String(route.method)} ${route.url} is not in the table of endpoints`);
    route.config = { ...route.config, endpoint };
    if (endpoint.since !== undefined) route.onRequest = gate(endpoint, endpoint.since);
    addSteps(route);
    route.handler = endsFailedStream(route.handler);
    built.push({ endpoint, url: route.url, method: route.method, schema: route.schema });
  });
  for (const plugin of plugins) await http.register(plugin);
  const described = [...built];
  addMissingRoutes(
    http,
    endpoints.filter((endpoint) => !described.some((route) => route.endpoint === endpoint)),
  );
}

/** Closes the connection of a stream that fails after its head: its client would wait for the rest for ever. */
function endsFailedStream(handler: RouteHandlerMethod): RouteHandlerMethod {
  return async function (request, reply) {
    try {
      return await handler.call(this, request, reply);
    } catch (error) {
      if (reply.sent && !reply.raw.writableEnded) request.raw.socket.destroy();
      throw error;
    }
  };
}

/** Older clients get dockerd's message. */
function gate({ method, path }: Endpoint, since: ApiVersion): onRequestHookHandler {
  return (request, _reply, done) => {
    if (!isBelow(request.apiVersion, since)) return done();
    return done(new EngineError('invalid', `${method} ${path} requires minimum API version ${since}`));
  };
}

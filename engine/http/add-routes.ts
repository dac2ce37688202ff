import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';

import { endpointOf, ENDPOINTS, type Endpoint } from './endpoints.ts';
import { addMissingRoutes } from './not-yet.ts';
import { describeRoutes, type RouteDescription } from './openapi.ts';

/** The domains' routes, each with its row of the table; an endpoint without a route says that it is not built yet. */
export async function addRoutes(
  http: FastifyInstance,
  plugins: readonly FastifyPluginAsyncTypebox[],
  endpoints: readonly Endpoint[] = ENDPOINTS,
): Promise<void> {
  const built: RouteDescription[] = [];
  http.get('/openapi.json', () => describeRoutes(described));
  http.addHook('onRoute', (route) => {
    const endpoint = endpointOf(endpoints, route.method, route.url);
    if (endpoint === undefined) throw new Error(`${String(route.method)} ${route.url} is in no table of endpoints`);
    route.config = { ...route.config, endpoint };
    built.push({ endpoint, url: route.url, method: route.method, schema: route.schema });
  });
  for (const plugin of plugins) await http.register(plugin);
  const described = [...built];
  addMissingRoutes(
    http,
    endpoints.filter((endpoint) => !described.some((route) => route.endpoint === endpoint)),
  );
}

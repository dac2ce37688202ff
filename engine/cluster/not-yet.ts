import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';

import { ENDPOINTS, routerPath } from '../http/endpoints.ts';
import { EngineError } from '../lib/errors.ts';
import type { Cluster } from './cluster.ts';

/** Services and tasks, endpoints 72 to 78: outside of a cluster as they will be, inside not built yet. */
export const missingClusterRoutes =
  ({ cluster }: { cluster: Cluster }): FastifyPluginAsyncTypebox =>
  // oxlint-disable-next-line require-await -- a plugin is asynchronous by its type
  async (http) => {
    for (const endpoint of ENDPOINTS.filter(({ path }) => /^\/(?:services|tasks)/.test(path))) {
      http.route({
        method: endpoint.method,
        url: routerPath(endpoint),
        handler: () => {
          cluster.manager();
          throw new EngineError('notImplemented', `${endpoint.title} is not implemented yet`);
        },
      });
    }
  };

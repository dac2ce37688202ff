import type { FastifyInstance } from 'fastify';

import { EngineError } from '../lib/errors.ts';
import { routerPath, type Endpoint } from './endpoints.ts';

/** Answers of endpoints that are not built yet, or need a cluster. */
export function addMissingRoutes(http: FastifyInstance, missing: readonly Endpoint[]): void {
  for (const endpoint of missing) {
    const { method, title, inCluster } = endpoint;
    const error = inCluster
      ? new EngineError('notInCluster', 'This node is not part of a swarm')
      : new EngineError('notImplemented', `${title} is not implemented yet`);
    http.route({
      method,
      url: routerPath(endpoint),
      handler: () => {
        throw error;
      },
    });
  }
}

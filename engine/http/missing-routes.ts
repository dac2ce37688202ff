import type { FastifyInstance } from 'fastify';

import { EngineError } from '../lib/errors.ts';
import { routerPath, type Endpoint } from './endpoints.ts';

/** Answers 501 at the endpoints without a handler. */
export function addMissingRoutes(http: FastifyInstance, missing: readonly Endpoint[]): void {
  for (const endpoint of missing) {
    const { method, title } = endpoint;
    http.route({
      method,
      url: routerPath(endpoint),
      handler: () => {
        throw new EngineError('notImplemented', `${title} is not implemented yet`);
      },
    });
  }
}

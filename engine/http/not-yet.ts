import type { FastifyInstance, HTTPMethods } from 'fastify';

import { EngineError } from '../lib/errors.ts';

/** Every endpoint of the specification: what has no route of its own says so. */
const ENDPOINTS: readonly (readonly [HTTPMethods, string])[] = [
  ['GET', '/containers/json'],
  ['POST', '/containers/create'],
  ['GET', '/containers/:ref/json'],
  ['GET', '/containers/:ref/top'],
  ['GET', '/containers/:ref/logs'],
  ['GET', '/containers/:ref/changes'],
  ['GET', '/containers/:ref/export'],
  ['GET', '/containers/:ref/stats'],
  ['POST', '/containers/:ref/resize'],
  ['POST', '/containers/:ref/start'],
  ['POST', '/containers/:ref/stop'],
  ['POST', '/containers/:ref/restart'],
  ['POST', '/containers/:ref/kill'],
  ['POST', '/containers/:ref/update'],
  ['POST', '/containers/:ref/rename'],
  ['POST', '/containers/:ref/pause'],
  ['POST', '/containers/:ref/unpause'],
  ['POST', '/containers/:ref/attach'],
  ['GET', '/containers/:ref/attach/ws'],
  ['POST', '/containers/:ref/wait'],
  ['DELETE', '/containers/:ref'],
  ['HEAD', '/containers/:ref/archive'],
  ['GET', '/containers/:ref/archive'],
  ['PUT', '/containers/:ref/archive'],
  ['POST', '/containers/:ref/exec'],
  ['POST', '/exec/:id/start'],
  ['POST', '/exec/:id/resize'],
  ['GET', '/exec/:id/json'],
  ['GET', '/images/json'],
  ['POST', '/build'],
  ['POST', '/images/create'],
  ['GET', '/images/:name/json'],
  ['GET', '/images/:name/history'],
  ['POST', '/images/:name/push'],
  ['POST', '/images/:name/tag'],
  ['DELETE', '/images/:name'],
  ['GET', '/images/search'],
  ['GET', '/images/:name/get'],
  ['GET', '/images/get'],
  ['POST', '/images/load'],
  ['POST', '/commit'],
  ['POST', '/auth'],
  ['GET', '/info'],
  ['GET', '/version'],
  ['GET', '/_ping'],
  ['GET', '/events'],
  ['GET', '/volumes'],
  ['POST', '/volumes/create'],
  ['GET', '/volumes/:name'],
  ['DELETE', '/volumes/:name'],
  ['GET', '/networks'],
  ['GET', '/networks/:ref'],
  ['POST', '/networks/create'],
  ['POST', '/networks/:ref/connect'],
  ['POST', '/networks/:ref/disconnect'],
  ['DELETE', '/networks/:ref'],
  ['GET', '/plugins'],
  ['POST', '/plugins/pull'],
  ['GET', '/plugins/:name'],
  ['POST', '/plugins/:name/enable'],
  ['POST', '/plugins/:name/disable'],
  ['DELETE', '/plugins/:name'],
  ['GET', '/nodes'],
  ['GET', '/nodes/:ref'],
  ['DELETE', '/nodes/:ref'],
  ['POST', '/nodes/:ref/update'],
  ['GET', '/swarm'],
  ['POST', '/swarm/init'],
  ['POST', '/swarm/join'],
  ['POST', '/swarm/leave'],
  ['POST', '/swarm/update'],
  ['GET', '/services'],
  ['POST', '/services/create'],
  ['GET', '/services/:ref'],
  ['DELETE', '/services/:ref'],
  ['POST', '/services/:ref/update'],
  ['GET', '/tasks'],
  ['GET', '/tasks/:ref'],
];

/** What needs a cluster says that there is none: nothing can make this daemon a member. */
const NEEDS_CLUSTER = /^\/(nodes|services|tasks|swarm$|swarm\/(leave|update)$)/;
const NO_CLUSTER = 'This node is not part of a swarm';

export function addMissingRoutes(http: FastifyInstance): void {
  for (const [method, url] of ENDPOINTS) {
    if (isThere(http, method, url)) continue;
    http.route({
      method,
      url,
      config: { hidden: true },
      handler: () => {
        if (NEEDS_CLUSTER.test(url)) throw new EngineError('notInCluster', NO_CLUSTER);
        throw new EngineError(
          'notImplemented',
          `${method} ${url.replaceAll(/:(\w+)/g, '{$1}')} is not implemented yet`,
        );
      },
    });
  }
}

/** Whatever a route calls its parameter. */
function isThere(http: FastifyInstance, method: HTTPMethods, url: string): boolean {
  return ['ref', 'id', 'name'].some((parameter) =>
    http.hasRoute({ method, url: url.replace(/:\w+/, `:${parameter}`) }),
  );
}

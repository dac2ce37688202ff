import type { FastifyInstance, HTTPMethods } from 'fastify';

import { EngineError } from '../lib/errors.ts';

/** The endpoints of the specification that are not built yet, in the words of whoever wants to use them. */
const MISSING: readonly (readonly [HTTPMethods, url: string, what: string])[] = [
  ['GET', '/containers/:ref/changes', 'the list of the changes of a container'],
  ['GET', '/containers/:ref/export', 'the export of a container'],
  ['GET', '/containers/:ref/stats', 'the statistics of a container'],
  ['POST', '/containers/:ref/update', 'the update of a container'],
  ['HEAD', '/containers/:ref/archive', 'copying out of a container'],
  ['GET', '/containers/:ref/archive', 'copying out of a container'],
  ['PUT', '/containers/:ref/archive', 'copying into a container'],
  ['POST', '/build', 'building images'],
  ['POST', '/images/:name/push', 'pushing to a registry'],
  ['GET', '/images/search', 'searching a registry'],
  ['POST', '/commit', 'the commit of a container'],
  ['POST', '/auth', 'logging in to a registry'],
  ['GET', '/plugins', 'the list of plugins'],
  ['POST', '/plugins/pull', 'pulling plugins'],
  ['GET', '/plugins/:name', 'inspecting plugins'],
  ['POST', '/plugins/:name/enable', 'enabling plugins'],
  ['POST', '/plugins/:name/disable', 'disabling plugins'],
  ['DELETE', '/plugins/:name', 'removing plugins'],
  ['POST', '/swarm/init', 'making a cluster'],
  ['POST', '/swarm/join', 'joining a cluster'],
];

/** What needs a cluster says that there is none: nothing can make this daemon a member. */
const NEEDS_CLUSTER: readonly (readonly [HTTPMethods, url: string])[] = [
  ['GET', '/nodes'],
  ['GET', '/nodes/:ref'],
  ['DELETE', '/nodes/:ref'],
  ['POST', '/nodes/:ref/update'],
  ['GET', '/swarm'],
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

export function addMissingRoutes(http: FastifyInstance): void {
  for (const [method, url, what] of MISSING) {
    refuse(http, method, url, new EngineError('notImplemented', `${what} is not implemented yet`));
  }
  for (const [method, url] of NEEDS_CLUSTER) {
    refuse(http, method, url, new EngineError('notInCluster', 'This node is not part of a swarm'));
  }
}

function refuse(http: FastifyInstance, method: HTTPMethods, url: string, error: EngineError): void {
  http.route({
    method,
    url,
    config: { hidden: true },
    handler: () => {
      throw error;
    },
  });
}

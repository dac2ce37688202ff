import type { Engine } from '../../engine.ts';
import type { AddRoutes } from '../../http/route-table.ts';
import { parseFilters } from '../../http/values/filters.ts';
import { parseStrictBoolean } from '../../http/values/strict-boolean.ts';
import { isBelow } from '../../http/versions/api-version.ts';
import { sendLogs, ServiceLogsQuery } from '../logs/answer.ts';
import { readVersion } from '../swarm/version.ts';
import { findService } from './find.ts';
import { insertDefaults } from './insert-defaults.ts';
import { listServices, SERVICE_FILTERS } from './list.ts';
import type { LocalNetworks } from './networks.ts';
import { presentStatus } from './present-status.ts';
import { presentService } from './present.ts';
import { readService } from './read-service.ts';
import { readRollback } from './rollback.ts';
import { ServiceBody, ServiceQuery, ServiceRef, ServicesQuery, UpdateServiceQuery } from './schema.ts';

type Needs = Pick<Engine, 'clock' | 'cluster'> & { networks: LocalNetworks };

/** Endpoints 72 to 76. What reads and shows services is loaded by managers only. */
export const serviceRoutes =
  ({ clock, cluster, networks }: Needs): AddRoutes =>
  (http) => {
    http.get('/services', {
      schema: { querystring: ServicesQuery },
      handler: async ({ query, apiVersion }) => {
        const filters = parseFilters(query.filters, SERVICE_FILTERS);
        const { replica } = await cluster.reading();
        // The command line counts otherwise, from the tasks, where it gets no status.
        const withStatus = !isBelow(apiVersion, '1.41') && parseStrictBoolean('status', query.status);
        return listServices(replica, filters).map((service) => ({
          ...presentService(service),
          ...(withStatus ? { ServiceStatus: presentStatus(replica, service) } : {}),
        }));
      },
    });

    http.post('/services/create', {
      schema: { body: ServiceBody },
      config: { needsBody: true },
      handler: async ({ body, headers }, reply) => {
        const manager = cluster.manager();
        await manager.fresh();
        const asked = readService(manager.replica, networks, body, headers['x-registry-auth']);
        const ID = await manager.write('createService', asked);
        return reply.code(201).send({ ID });
      },
    });

    http.get('/services/:ref', {
      schema: { params: ServiceRef, querystring: ServiceQuery },
      handler: async ({ params, query }) => {
        const { replica } = await cluster.reading();
        const service = findService(replica, params.ref);
        const withDefaults = parseStrictBoolean('insertDefaults', query.insertDefaults);
        return presentService(withDefaults ? insertDefaults(service) : service);
      },
    });

    http.get('/services/:ref/logs', {
      schema: { params: ServiceRef, querystring: ServiceLogsQuery },
      handler: async (request, reply) => {
        const { replica } = await cluster.reading();
        const service = findService(replica, request.params.ref);
        const source = { service: service.id, template: service.spec.template };
        await sendLogs({ clock, manager: cluster.manager() }, source, request, reply);
      },
    });

    http.delete('/services/:ref', {
      schema: { params: ServiceRef },
      handler: async ({ params }, reply) => {
        await cluster.manager().write('removeService', params.ref);
        return reply.code(200).send();
      },
    });

    http.post('/services/:ref/update', {
      schema: { params: ServiceRef, querystring: UpdateServiceQuery, body: ServiceBody },
      config: { needsBody: true },
      handler: async ({ params, query, body, headers }) => {
        const manager = cluster.manager();
        const version = readVersion('service', query.version);
        await manager.fresh();
        const asked = readService(manager.replica, networks, body, headers['x-registry-auth']);
        const isRollback = readRollback(query.rollback);
        await manager.write('updateService', { ref: params.ref, version, isRollback, ...asked });
        return { Warnings: null };
      },
    });
  };

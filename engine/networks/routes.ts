import { Type } from 'typebox';

import type { Events } from '../events/events.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { parseFilters } from '../http/values/filters.ts';
import { IS_PRUNING, parsePruneFilters, PruneQuery } from '../http/values/prune-filters.ts';
import { isBelow } from '../http/versions/api-version.ts';
import type { KeyLock } from '../lib/concurrency/key-lock.ts';
import { OneAtATime } from '../lib/concurrency/one-at-a-time.ts';
import { createNetwork, removeNetwork } from './create.ts';
import { findNetwork, listNetworks, NETWORK_FILTERS } from './list.ts';
import type { Networks } from './networks.ts';
import type { NetworkCluster } from './overlay/cluster-networks.ts';
import { presentNetwork } from './present.ts';
import { pruneNetworks } from './prune.ts';
import {
  CreatedNetwork,
  CreateNetworkBody,
  InspectNetworkQuery,
  PrunedNetworks,
  NetworkRef,
  NetworksQuery,
  NetworkWire,
} from './schema.ts';
import { createSteps, inspectSteps, listSteps } from './versions.ts';

/** Endpoints 51 to 53 and 56; containers connect and disconnect in their own domain. */
export const networkRoutes =
  (engine: { networks: Networks; events: Events; locks: KeyLock; cluster: NetworkCluster }): AddRoutes =>
  (http) => {
    http.get('/networks', {
      schema: { querystring: NetworksQuery, response: { 200: Type.Array(NetworkWire) } },
      handler: async ({ query, apiVersion }) => {
        const filters = parseFilters(query.filters, NETWORK_FILTERS);
        const networks = listNetworks(engine, filters, await engine.cluster.networks());
        const withContainers = isBelow(apiVersion, '1.28'); // later it takes an inspect
        return networks.map((network) => presentNetwork(engine.networks, network, { withContainers }));
      },
      config: { steps: listSteps },
    });

    http.get('/networks/:ref', {
      schema: { params: NetworkRef, querystring: InspectNetworkQuery, response: { 200: NetworkWire } },
      handler: async ({ params, query }) => {
        const network = findNetwork(engine, params.ref, await engine.cluster.networks(), query.scope);
        return presentNetwork(engine.networks, network, { withStatus: true });
      },
      config: { steps: inspectSteps },
    });

    http.post('/networks/create', {
      schema: { body: CreateNetworkBody, response: { 201: CreatedNetwork } },
      config: { steps: createSteps },
      handler: async ({ body }, reply) => {
        const { id, warning } = await createNetwork(engine, body);
        return reply.code(201).send({ Id: id, Warning: warning });
      },
    });

    const pruning = new OneAtATime(IS_PRUNING);
    http.post('/networks/prune', {
      schema: { querystring: PruneQuery, response: { 200: PrunedNetworks } },
      handler: async ({ query }, reply) => {
        const filters = parsePruneFilters(query.filters, ['until'], engine.networks.settings.clock.now());
        const signal = clientGone(reply.raw);
        const names = await pruning.run(async () => await pruneNetworks(engine, filters, signal));
        return { NetworksDeleted: names.length === 0 ? null : names };
      },
    });

    http.delete('/networks/:ref', {
      schema: { params: NetworkRef },
      handler: async ({ params }, reply) => {
        await removeNetwork(engine, params.ref);
        return reply.code(204).send();
      },
    });
  };

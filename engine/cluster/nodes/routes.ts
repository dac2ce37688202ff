import type { AddRoutes } from '../../http/route-table.ts';
import { parseFilters } from '../../http/values/filters.ts';
import type { Cluster } from '../cluster.ts';
import { readVersion } from '../swarm/version.ts';
import { findNode } from './find.ts';
import { listNodes, NODE_FILTERS } from './list.ts';
import { presentNode } from './present.ts';
import { NodeRef, NodesQuery, NodeSpecBody, RemoveQuery, UpdateNodeQuery } from './schema.ts';
import { readNodeSpec } from './update.ts';

/** Endpoints 63 to 66. What shows nodes is loaded by members only. */
export const nodeRoutes =
  ({ cluster }: { cluster: Cluster }): AddRoutes =>
  (http) => {
    http.get('/nodes', {
      schema: { querystring: NodesQuery },
      handler: async ({ query }) => {
        const filters = parseFilters(query.filters, NODE_FILTERS);
        const { replica, leader } = await cluster.reading();
        return listNodes(replica, filters).map((node) => presentNode(replica, node, leader));
      },
    });

    http.get('/nodes/:ref', {
      schema: { params: NodeRef },
      handler: async ({ params }) => {
        const { replica, leader } = await cluster.reading();
        return presentNode(replica, findNode(replica, params.ref), leader);
      },
    });

    http.delete('/nodes/:ref', {
      schema: { params: NodeRef, querystring: RemoveQuery },
      handler: async ({ params, query }, reply) => {
        await cluster.manager().write('removeNode', { ref: params.ref, force: query.force ?? false });
        return reply.code(200).send();
      },
    });

    http.post('/nodes/:ref/update', {
      schema: { params: NodeRef, querystring: UpdateNodeQuery, body: NodeSpecBody },
      handler: async ({ params, query, body }, reply) => {
        const version = readVersion('node', query.version);
        const manager = cluster.manager();
        await manager.write('updateNode', { ref: params.ref, version, spec: readNodeSpec(body) });
        return reply.code(200).send();
      },
    });
  };

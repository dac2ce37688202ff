import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';

import { parseFilters } from '../../http/values/filters.ts';
import type { Cluster } from '../cluster.ts';
import type { Manager } from '../membership/manager.ts';
import { readVersion } from '../swarm/version.ts';
import { findNode } from './find.ts';
import { listNodes, NODE_FILTERS } from './list.ts';
import type { presentNode } from './present.ts';
import { NodeRef, NodesQuery, NodeSpecBody, RemoveQuery, UpdateNodeQuery } from './schema.ts';
import { readNodeSpec } from './update.ts';

/** Endpoints 63 to 66. */
export const nodeRoutes =
  ({ cluster }: { cluster: Cluster }): FastifyPluginAsyncTypebox =>
  // oxlint-disable-next-line require-await -- a plugin is asynchronous by its type
  async (http) => {
    http.get('/nodes', {
      schema: { querystring: NodesQuery },
      handler: async ({ query }) => {
        const filters = parseFilters(query.filters, NODE_FILTERS);
        const { manager, present } = await reading(cluster);
        return listNodes(manager.replica, filters).map((node) => present(manager.replica, node, manager.leader?.node));
      },
    });

    http.get('/nodes/:ref', {
      schema: { params: NodeRef },
      handler: async ({ params }) => {
        const { manager, present } = await reading(cluster);
        return present(manager.replica, findNode(manager.replica, params.ref), manager.leader?.node);
      },
    });

    http.delete('/nodes/:ref', {
      schema: { params: NodeRef, querystring: RemoveQuery },
      handler: async ({ params, query }, reply) => {
        await cluster.manager().write('removeNode', { ref: params.ref, force: query.force ?? false });
        return await reply.code(200).send();
      },
    });

    http.post('/nodes/:ref/update', {
      schema: { params: NodeRef, querystring: UpdateNodeQuery, body: NodeSpecBody },
      handler: async ({ params, query, body }, reply) => {
        const version = readVersion('node', query.version);
        const manager = cluster.manager();
        await manager.write('updateNode', { ref: params.ref, version, spec: readNodeSpec(body) });
        return await reply.code(200).send();
      },
    });
  };

/** The records as they are now. What shows nodes is loaded by members only. */
async function reading(cluster: Cluster): Promise<{ manager: Manager; present: typeof presentNode }> {
  const manager = cluster.manager();
  await manager.fresh();
  const { presentNode: present } = await import('./present.ts');
  return { manager, present };
}

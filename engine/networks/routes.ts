import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';

import { parseFilters } from '../http/values/filters.ts';
import { EngineError } from '../lib/errors.ts';
import { listNetworks, NETWORK_FILTERS } from './list.ts';
import type { Networks } from './networks.ts';
import { presentNetwork } from './present.ts';
import { ConnectBody, CreateNetworkBody, DisconnectBody, NetworkRef, NetworksQuery, NetworkWire } from './schema.ts';

const PREDEFINED = new Set(['bridge', 'host', 'none', 'default']);

/** Endpoints 51 to 56. */
export const networkRoutes =
  (engine: { networks: Networks }): FastifyPluginAsyncTypebox =>
  // oxlint-disable-next-line require-await -- a plugin is asynchronous by its type
  async (http) => {
    http.get('/networks', {
      schema: { querystring: NetworksQuery, response: { 200: Type.Array(NetworkWire) } },
      handler: ({ query }) =>
        listNetworks(engine, parseFilters(query.filters, NETWORK_FILTERS)).map((network) =>
          presentNetwork(engine.networks, network),
        ),
    });

    http.get('/networks/:ref', {
      schema: { params: NetworkRef, response: { 200: NetworkWire } },
      handler: ({ params }) => presentNetwork(engine.networks, engine.networks.find(params.ref)),
    });

    http.post('/networks/create', {
      schema: { body: CreateNetworkBody },
      handler: ({ body }) => {
        const name = body.Name ?? '';
        if (name === '') throw new EngineError('invalid', 'the name of the network is required');
        if (PREDEFINED.has(name)) {
          throw new EngineError('forbidden', `operation is not permitted on predefined ${name} network `);
        }
        throw userDefined();
      },
    });

    http.post('/networks/:ref/connect', {
      schema: { params: NetworkRef, body: ConnectBody },
      handler: ({ params }) => {
        refuseHost(engine.networks.find(params.ref));
        throw userDefined();
      },
    });

    http.post('/networks/:ref/disconnect', {
      schema: { params: NetworkRef, body: DisconnectBody },
      handler: ({ params }) => {
        refuseHost(engine.networks.find(params.ref));
        throw userDefined();
      },
    });

    http.delete('/networks/:ref', {
      schema: { params: NetworkRef },
      handler: ({ params }) => {
        const { name } = engine.networks.find(params.ref);
        throw new EngineError('forbidden', `${name} is a pre-defined network and cannot be removed`);
      },
    });
  };

/** The error for user-defined networks. */
function userDefined(): EngineError {
  return new EngineError(
    'notImplemented',
    'user-defined networks are not supported: containers use bridge, host, none or container:<name>',
  );
}

function refuseHost({ name }: { name: string }): void {
  if (name !== 'host') return;
  const message = 'container cannot be disconnected from host network or connected to host network';
  throw new EngineError('forbidden', message);
}

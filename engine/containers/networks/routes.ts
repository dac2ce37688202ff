import type { Engine } from '../../engine.ts';
import type { AddRoutes } from '../../http/route-table.ts';
import { ConnectBody, DisconnectBody, NetworkRef } from '../../networks/schema.ts';
import { connectSteps } from '../../networks/versions.ts';
import { connectContainer, disconnectContainer } from './connect.ts';

/** Endpoints 54 and 55: connections of containers with networks. */
export const attachmentRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.post('/networks/:ref/connect', {
      schema: { params: NetworkRef, body: ConnectBody },
      config: { steps: connectSteps },
      handler: async ({ params, body }, reply) => {
        const wanted = { network: params.ref, container: body.Container ?? '' };
        await connectContainer(engine, wanted, body.EndpointConfig ?? {});
        return reply.code(200).send();
      },
    });

    http.post('/networks/:ref/disconnect', {
      schema: { params: NetworkRef, body: DisconnectBody },
      handler: async ({ params, body }, reply) => {
        await disconnectContainer(engine, {
          network: params.ref,
          container: body.Container ?? '',
          isForced: body.Force ?? false,
        });
        return reply.code(200).send();
      },
    });
  };

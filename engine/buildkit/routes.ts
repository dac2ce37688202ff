import type { Duplex } from 'node:stream';

import type { Engine } from '../engine.ts';
import { headerLines } from '../http/headers.ts';
import { clientIdentity } from '../http/listening/client-identity.ts';
import { PRIOR_KNOWLEDGE_HEADER } from '../http/listening/prior-knowledge.ts';
import type { Reply } from '../http/reply.ts';
import type { ApiRequest } from '../http/request.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { takeOver } from '../http/streams/hijack.ts';
import { EngineError } from '../lib/errors.ts';
import type { BuildKit } from './buildkit.ts';
import { describedSession } from './session/described-session.ts';

const UPGRADED = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: h2c'];

/** The connections of BuildKit's clients. */
export const buildKitRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    let loaded: Promise<BuildKit> | undefined;
    const load = async (): Promise<BuildKit> =>
      await (loaded ??= import('./buildkit.ts').then((module) => new module.BuildKit(engine)));

    http.post('/grpc', {
      handler: async (request, reply) => {
        refusePlain(request);
        const buildKit = await load();
        const client = clientIdentity(request.raw);
        buildKit.refuseCaller(client);
        buildKit.serve(upgraded(request, reply), client);
      },
    });
    http.post('/session', {
      handler: async (request, reply) => {
        refusePlain(request);
        const buildKit = await load();
        const client = clientIdentity(request.raw);
        const described = describedSession(request.headers, client);
        buildKit.refuseSession(described.id, client);
        buildKit.openSession(upgraded(request, reply), client, described);
      },
    });
  };

/** The connection, on which the client speaks HTTP/2. */
function upgraded(request: ApiRequest, reply: Reply): Duplex {
  if (request.headers[PRIOR_KNOWLEDGE_HEADER] !== undefined) return takeOver(request, reply, '');
  return takeOver(request, reply, [...UPGRADED, ...headerLines(reply.getHeaders()), '', ''].join('\r\n'));
}

function refusePlain({ headers }: ApiRequest): void {
  if (headers.upgrade?.toLowerCase() === 'h2c') return;
  throw new EngineError('invalid', 'the connection must be upgraded to h2c');
}

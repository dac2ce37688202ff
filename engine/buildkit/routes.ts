import type { Duplex } from 'node:stream';

import type { Engine } from '../engine.ts';
import { headerLines } from '../http/headers.ts';
import type { Reply } from '../http/reply.ts';
import type { ApiRequest } from '../http/request.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { takeOver } from '../http/streams/hijack.ts';
import { EngineError } from '../lib/errors.ts';
import type { BuildKit } from './buildkit.ts';

const UPGRADED = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: h2c'];
const SESSION_HEADER = 'x-docker-expose-session-';

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
        buildKit.serve(upgraded(request, reply));
      },
    });
    http.post('/session', {
      handler: async (request, reply) => {
        refusePlain(request);
        const header = (name: string): string => [request.headers[SESSION_HEADER + name] ?? ''].flat().join(', ');
        const id = header('uuid');
        const buildKit = await load();
        buildKit.refuseSession(id);
        const methods = header('grpc-method').split(/,\s*/).filter(Boolean);
        buildKit.openSession(upgraded(request, reply), { id, methods });
      },
    });
  };

/** The connection, on which the client speaks HTTP/2. */
function upgraded(request: ApiRequest, reply: Reply): Duplex {
  return takeOver(request, reply, [...UPGRADED, ...headerLines(reply.getHeaders()), '', ''].join('\r\n'));
}

function refusePlain({ headers }: ApiRequest): void {
  if (headers.upgrade?.toLowerCase() === 'h2c') return;
  throw new EngineError('invalid', 'the connection must be upgraded to h2c');
}

import type { Engine } from '../engine.ts';
import type { ApiRequest } from '../http/request.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { takeOver } from '../http/streams/hijack.ts';
import { EngineError } from '../lib/errors.ts';
import type { BuildKit } from './buildkit.ts';

const UPGRADED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
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
        buildKit.serve(takeOver(request, reply, UPGRADED));
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
        buildKit.openSession(takeOver(request, reply, UPGRADED), { id, sharedKey: header('sharedkey'), methods });
      },
    });
  };

function refusePlain({ headers }: ApiRequest): void {
  if (headers.upgrade?.toLowerCase() === 'h2c') return;
  throw new EngineError('invalid', 'the connection must be upgraded to h2c');
}

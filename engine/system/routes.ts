import { swarmInfo } from '../cluster/info.ts';
import type { Engine } from '../engine.ts';
import type { Reply } from '../http/reply.ts';
import type { ApiRequest } from '../http/request.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { DiskUsageWire } from './disk-usage-schema.ts';
import { DiskUsage } from './disk-usage.ts';
import { infoOf, versionOf } from './info.ts';
import { Info, Version } from './schema.ts';
import { infoSteps } from './versions.ts';

/** Endpoints 43 to 45, and the disk usage. */
export const systemRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.get('/info', {
      schema: { response: { 200: Info } },
      config: { steps: infoSteps },
      handler: async () => ({ ...infoOf(engine), Swarm: await swarmInfo(engine.cluster) }),
    });
    http.get('/version', { schema: { response: { 200: Version } }, handler: () => versionOf(engine) });
    const usage = new DiskUsage(engine);
    http.get('/system/df', {
      schema: { response: { 200: DiskUsageWire } },
      handler: async () => await usage.look(),
    });
    http.get('/_ping', { handler: ping });
    http.head('/_ping', { handler: ping });
  };

const PING_HEADERS = {
  'Builder-Version': '1',
  'Cache-Control': 'no-cache, no-store, must-revalidate',
  Pragma: 'no-cache',
};

/** Clients ask it first: nobody may keep the answer, and `Builder-Version` says that there is no BuildKit. */
function ping(_request: ApiRequest, reply: Reply): Reply {
  return reply.headers(PING_HEADERS).type('text/plain; charset=utf-8').send('OK');
}

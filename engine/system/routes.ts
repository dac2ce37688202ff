import { swarmInfo, swarmState } from '../cluster/info.ts';
import type { Engine } from '../engine.ts';
import type { Reply } from '../http/reply.ts';
import type { ApiRequest } from '../http/request.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { refuseIf } from '../lib/errors.ts';
import { deviceNames } from '../oci/cdi/devices.ts';
import { RuntimeFeatures } from '../runtime/features.ts';
import { DISK_USAGE_KINDS, DiskUsageQuery, DiskUsageWire } from './disk-usage-schema.ts';
import { DiskUsage, listsOf, type DiskUsageKind } from './disk-usage.ts';
import { infoOf, versionOf, withFeatures } from './info/info.ts';
import { Info, Version } from './schema.ts';
import { diskUsageSteps, infoSteps, knowsUsages } from './versions.ts';

/** Endpoints 43 to 45, and the disk usage. */
export const systemRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    const features = new RuntimeFeatures();
    http.get('/info', {
      schema: { response: { 200: Info } },
      config: { steps: infoSteps },
      handler: async () => {
        const [info, Swarm] = [infoOf(engine), await swarmInfo(engine.cluster)];
        const devices = (await deviceNames(engine.config.cdiSpecDirs)).map((ID) => ({ Source: 'cdi', ID }));
        const DiscoveredDevices = devices.length === 0 ? null : devices;
        const Warnings = [...(info.Warnings ?? []), ...(Swarm.Warnings ?? [])];
        const Runtimes = await withFeatures(info.Runtimes, features);
        return { ...info, Runtimes, DiscoveredDevices, Warnings: Warnings.length === 0 ? null : Warnings, Swarm };
      },
    });
    http.get('/version', { schema: { response: { 200: Version } }, handler: () => versionOf(engine) });
    const usage = new DiskUsage(engine);
    http.get('/system/df', {
      schema: { querystring: DiskUsageQuery, response: { 200: DiskUsageWire } },
      config: { steps: diskUsageSteps },
      handler: async ({ query: { type = [], verbose }, apiVersion }) => {
        const usages = await usage.measure(type.length === 0 ? DISK_USAGE_KINDS : type.map(kindOf));
        return verbose === true && knowsUsages(apiVersion) ? usages : { ...listsOf(usages), ...usages };
      },
    });
    const ping = (_request: ApiRequest, reply: Reply): Reply =>
      reply
        .headers({ ...PING_HEADERS, Swarm: swarmState(engine.cluster) })
        .type('text/plain; charset=utf-8')
        .send('OK');
    http.get('/_ping', { handler: ping });
    http.head('/_ping', { handler: ping });
  };

/** Clients ask `/_ping` first: nobody may keep the answer, and `Builder-Version` says that there is no BuildKit. */
const PING_HEADERS = {
  'Builder-Version': '1',
  'Cache-Control': 'no-cache, no-store, must-revalidate',
  Pragma: 'no-cache',
};

function kindOf(text: string): DiskUsageKind {
  const kind = DISK_USAGE_KINDS.find((each) => each === text);
  refuseIf(kind === undefined, `unknown object type: ${text}`);
  return kind!;
}

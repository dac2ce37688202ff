import { buildRoutes } from './builder/routes.ts';
import { buildKitRoutes } from './buildkit/routes.ts';
import { nodeRoutes } from './cluster/nodes/routes.ts';
import { secretRoutes } from './cluster/secrets/routes.ts';
import { serviceRoutes } from './cluster/services/routes.ts';
import { swarmRoutes } from './cluster/swarm/routes.ts';
import { taskRoutes } from './cluster/tasks/routes.ts';
import { containerFileRoutes } from './containers/archive/routes.ts';
import { commitRoutes } from './containers/commit/routes.ts';
import { attachmentRoutes } from './containers/networks/routes.ts';
import { containerRoutes } from './containers/routes.ts';
import type { Engine } from './engine.ts';
import { eventRoutes } from './events/routes.ts';
import { execRoutes } from './exec/routes.ts';
import type { AddRoutes } from './http/route-table.ts';
import { imageRoutes } from './images/routes.ts';
import { pluginRoutes } from './managed-plugins/routes.ts';
import { networkRoutes } from './networks/routes.ts';
import { pageRoutes } from './page/routes.ts';
import { registryRoutes } from './registry/routes.ts';
import { systemRoutes } from './system/routes.ts';
import { volumeRoutes } from './volumes/routes.ts';

/** The index of the API: every domain's routes, in the order of the specification. */
export function routes(engine: Engine): AddRoutes[] {
  return [
    containerRoutes(engine),
    containerFileRoutes(engine),
    execRoutes(engine),
    imageRoutes(engine),
    buildRoutes(engine),
    buildKitRoutes(engine),
    commitRoutes(engine),
    registryRoutes(engine),
    systemRoutes(engine),
    eventRoutes(engine),
    volumeRoutes(engine),
    networkRoutes(engine),
    attachmentRoutes(engine),
    pluginRoutes(engine),
    nodeRoutes(engine),
    swarmRoutes(engine),
    serviceRoutes(engine),
    taskRoutes(engine),
    secretRoutes(engine),
    pageRoutes(engine),
  ];
}

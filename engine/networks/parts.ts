import { join } from 'node:path';

import type { Config } from '../config/daemon-config.ts';
import type { Engine } from '../engine.ts';
import { parsePool } from './addresses/subnets.ts';
import type { Registration } from './dns/registration.ts';
import type { NetworkSettings } from './needs.ts';
import { Networks } from './networks.ts';

type Needs = Pick<NetworkSettings, 'background' | 'clock' | 'db' | 'log' | 'plugins'> &
  Pick<Engine, 'config'> & {
    ofCluster: NetworkSettings['ofCluster'];
    closedPorts: NetworkSettings['closedPorts'];
    tunnelPort: NetworkSettings['tunnelPort'];
    /** Supplied by the containers domain. */
    sandboxOwners: SandboxOwners;
  };
type NetworkParts = { networks: Networks };

/** The facts about containers that networks need. */
export type SandboxOwners = Readonly<{
  /** The current name of a container without the slash. */
  nameOf: (containerId: string) => string | undefined;
  /** The path of a running container's network namespace. */
  netnsOf: (containerId: string) => string | undefined;
  /** The containers that the resolver serves. */
  served: (config: Config, networks: Networks) => readonly Registration[];
  /** Whether a container is running or starting. */
  isAnyAlive: () => boolean;
}>;

/** The parts that this domain adds to the engine. The stack ends them. */
export function networkParts(
  { background, clock, config, db, log, plugins, ofCluster, closedPorts, tunnelPort, sandboxOwners }: Needs,
  undo: AsyncDisposableStack,
): NetworkParts {
  const { bip, bridge, dataRoot, execRoot, mtu } = config;
  const fixedCidrV6 = config.ipv6 ? config.fixedCidrV6 : '';
  const pools = config.defaultAddressPools.flatMap(parsePool);
  const { nameOf, netnsOf } = sandboxOwners;
  const ofDns = {
    dnsFolder: join(execRoot, 'dns'),
    proxyFolder: join(execRoot, 'proxies'),
    ...{ ofCluster, closedPorts, tunnelPort },
    overlayFolder: join(execRoot, 'overlay'),
    served: (all: Networks) => sandboxOwners.served(config, all),
  };
  const networks = undo.use(
    new Networks({
      ...{ background, bip, bridge, clock, dataRoot, db, fixedCidrV6, log, mtu, nameOf, netnsOf, plugins, pools },
      ...ofDns,
    }),
  );
  // Bridges and rules are removed with the last container; the next start makes them in milliseconds.
  undo.defer(async () => (sandboxOwners.isAnyAlive() ? undefined : await networks.removeAll()));
  return { networks };
}

import { join } from 'node:path';

import type { Config } from '../config/daemon-config.ts';
import { parsePool } from './addresses/subnets.ts';
import type { Served } from './dns/served.ts';
import { Networks, type NetworkSettings } from './networks.ts';

type Needs = Pick<NetworkSettings, 'background' | 'clock' | 'db' | 'log'> & {
  config: Config;
  /** Of the containers domain. */
  sandboxOwners: SandboxOwners;
};
type NetworkParts = { networks: Networks };

/** The containers, as far as networks have to know them. */
export type SandboxOwners = Readonly<{
  /** The current name of a container without the slash. */
  nameOf: (containerId: string) => string | undefined;
  /** Those that need names. */
  served: (config: Config, networks: Networks) => readonly Served[];
  /** Whether one runs, or is about to. */
  isAnyAlive: () => boolean;
}>;

/** What this domain adds to the engine. The stack ends it. */
export function networkParts(
  { background, clock, config, db, log, sandboxOwners }: Needs,
  undo: AsyncDisposableStack,
): NetworkParts {
  const { bip, bridge, dataRoot, execRoot, mtu } = config;
  const pools = config.defaultAddressPools.flatMap(parsePool);
  const { nameOf } = sandboxOwners;
  const ofDns = {
    dnsFolder: join(execRoot, 'dns'),
    proxyFolder: join(execRoot, 'proxies'),
    served: (all: Networks) => sandboxOwners.served(config, all),
  };
  const networks = undo.use(
    new Networks({ background, bip, bridge, clock, dataRoot, db, log, mtu, nameOf, pools, ...ofDns }),
  );
  // With the last container its bridge and its rules go too; the next start makes them in milliseconds.
  undo.defer(async () => (sandboxOwners.isAnyAlive() ? undefined : await networks.removeAll()));
  return { networks };
}

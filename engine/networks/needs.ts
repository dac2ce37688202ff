import type { Logger } from 'pino';

import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Background } from '../lib/concurrency/background.ts';
import type { Plugins } from '../plugins/plugins.ts';
import type { Cidr } from './addresses/cidr.ts';
import type { ClosedPort } from './bridge/rules/ruleset.ts';
import type { Registration } from './dns/registration.ts';
import type { Networks } from './networks.ts';

/** The settings of networks, and the parts of the engine that they need. */
export type NetworkSettings = Readonly<{
  background: Background;
  db: Database;
  clock: Clock;
  log: Logger;
  plugins: Plugins;
  dataRoot: string;
  /** The process that answers the containers' DNS queries. */
  dnsFolder: string;
  /** Folder of the processes that serve ports on the loopback of IPv6. */
  proxyFolder: string;
  /** Folder of the mounted namespaces of overlays. */
  overlayFolder: string;
  /** All containers that it has to serve now. */
  served: (networks: Networks) => readonly Registration[];
  /** The network of the cluster that has this name or id; only managers know. */
  ofCluster: (ref: string) => Readonly<{ isAttachable: boolean }> | undefined;
  /** The machine's ports that containers do not reach: those of the cluster. */
  closedPorts: () => readonly ClosedPort[];
  /** The port of the cluster's tunnels, on all machines. */
  tunnelPort: () => number;
  /** Name of the bridge, or `none`. */
  bridge: string;
  /** Such as `172.30.0.1/16`; empty: chosen. */
  bip: string;
  /** Range of IPv6, for containers on the bridge, such as `fd00:1::/64`; empty: none. */
  fixedCidrV6: string;
  /** 0: chosen. */
  mtu: number;
  /** The ranges for subnets of new networks; empty: the usual private ones. */
  pools: readonly Cidr[];
  /** The current name of a container without the slash, for network inspect. */
  nameOf: (containerId: string) => string | undefined;
  /** The path of a running container's network namespace. */
  netnsOf: (containerId: string) => string | undefined;
}>;

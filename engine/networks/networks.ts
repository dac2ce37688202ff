import type { Logger } from 'pino';

import type { Database } from '../db/database.ts';
import { Netlink } from '../host/network/netlink.ts';
import type { Background } from '../lib/background.ts';
import type { Clock } from '../lib/clock.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { addressOf, automaticMtu, checkBridgeName, findBridge, gatewayOf, rangesInUse } from './bridge/bridge-link.ts';
import { BridgeNetwork, removeBridgeNetwork } from './bridge/bridge-network.ts';
import { bridgeDriver } from './bridge/driver.ts';
import { cidrText, ipText, parseIp, rangeOf } from './cidr.ts';
import type { NetworkDriver } from './driver.ts';
import { hasAddress, type Endpoint } from './endpoint.ts';
import { DEFAULT_NETWORK, networkOfMode, type NetworkMode } from './mode.ts';
import { hostDriver, nullDriver } from './plain-drivers.ts';
import { NetworkStore, type NetworkRecord } from './store.ts';
import { chooseSubnet, parseBip } from './subnets.ts';

export type NetworkSettings = Readonly<{
  background: Background;
  db: Database;
  clock: Clock;
  log: Logger;
  dataRoot: string;
  /** Name of the bridge, or `none`. */
  bridge: string;
  /** Such as `172.30.0.1/16`; empty: chosen. */
  bip: string;
  /** 0: chosen. */
  mtu: number;
  /** The current name of a container without the slash, for network inspect. */
  nameOf: (containerId: string) => string | undefined;
}>;

const PREDEFINED: readonly { name: string; driver: string }[] = [
  { name: 'none', driver: 'null' },
  { name: 'host', driver: 'host' },
  { name: 'bridge', driver: 'bridge' },
];

/** The networks of this daemon. Nothing on the machine changes before `start`. */
export class Networks implements Disposable {
  readonly settings: NetworkSettings;
  readonly store: NetworkStore;
  readonly #drivers: ReadonlyMap<string, NetworkDriver>;
  #bridge: BridgeNetwork | undefined;

  constructor(settings: NetworkSettings) {
    if (settings.bridge !== 'none') checkBridgeName(settings.bridge);
    if (settings.bip !== '') parseBip(settings.bip);
    this.settings = settings;
    this.store = new NetworkStore(settings.db);
    const bridge = bridgeDriver(
      () => this.bridge(),
      () => this.#bridge,
    );
    this.#drivers = new Map([bridge, hostDriver, nullDriver].map((driver) => [driver.name, driver]));
    for (const { name, driver } of PREDEFINED) {
      if (this.store.networkNamed(name) !== undefined) continue;
      this.store.saveNetwork({ id: newId(), name, driver, createdAt: settings.clock.now() });
    }
  }

  /** Sets up the bridge for the stored endpoints; those of dead containers must already be removed. */
  async start(): Promise<void> {
    const { background, dataRoot, log, bridge: name } = this.settings;
    const stored = this.predefined('bridge');
    const place = this.#place();
    this.#refuseMove(stored, { bridge: name, ...place });
    if (stored.bridge !== undefined && stored.bridge !== name) await removeBridgeNetwork(stored.bridge, dataRoot);
    if (place === undefined) return;
    this.store.saveNetwork({ ...this.predefined('bridge'), bridge: name, ...place });
    this.#bridge = new BridgeNetwork({ name, ...place, mtu: this.mtu(), background, dataRoot, log }, () =>
      this.store.endpoints().filter(hasAddress),
    );
  }

  /** The bridge network. Throws if the daemon has none. */
  bridge(): BridgeNetwork {
    if (this.#bridge === undefined) throw new EngineError('notFound', 'network bridge not found');
    return this.#bridge;
  }

  predefined(name: 'bridge' | 'host' | 'none'): NetworkRecord {
    const network = this.store.networkNamed(name);
    if (network === undefined) throw new Error(`the predefined network ${name} has no record`);
    return network;
  }

  /** All networks of this daemon; without a bridge there is no network `bridge`. */
  list(): NetworkRecord[] {
    return this.store.networks().filter(({ driver }) => driver !== 'bridge' || this.settings.bridge !== 'none');
  }

  /** Finds a network by its id, its name, or a unique prefix of its id. */
  find(ref: string): NetworkRecord {
    const networks = this.list();
    const exact = networks.find(({ id }) => id === ref) ?? networks.find(({ name }) => name === ref);
    if (exact !== undefined) return exact;
    const [first, ...more] = ref === '' ? [] : networks.filter(({ id }) => id.startsWith(ref));
    if (first === undefined) throw new EngineError('notFound', `network ${ref} not found`);
    if (more.length > 0) {
      throw new EngineError(
        'invalid',
        `network ${ref} is ambiguous (${more.length + 1} matches found based on ID prefix)`,
      );
    }
    return first;
  }

  /** The driver of this network. */
  driverOf({ driver }: NetworkRecord): NetworkDriver {
    const found = this.#drivers.get(driver);
    if (found === undefined) throw new EngineError('notFound', `plugin "${driver}" not found`);
    return found;
  }

  /**
   * The network that a mode names. Undefined for a default mode on a daemon without a bridge: the container then has
   * loopback only. Throws `notFound`.
   */
  forMode(mode: NetworkMode): NetworkRecord | undefined {
    const ref = networkOfMode(mode);
    if (ref === undefined || (ref === DEFAULT_NETWORK && this.settings.bridge === 'none')) return undefined;
    return this.find(ref);
  }

  /** The containers that are in a network now. */
  membersOf(networkId: string): Endpoint[] {
    return this.store.endpoints().filter((endpoint) => endpoint.networkId === networkId);
  }

  /** A container's endpoints while it runs: the same array as long as nothing changes. */
  endpointsOf(containerId: string): readonly Endpoint[] {
    return this.store.endpointsOf(containerId);
  }

  /** Frees the address and ports of an endpoint after its removal is committed, not before. */
  giveBack(network: NetworkRecord, endpoint: Endpoint): void {
    const { background, db } = this.settings;
    const driver = this.driverOf(network);
    db.afterCommit(() => {
      background.untilDone('free the ports of a container', { container: endpoint.containerId }, () => {
        driver.unpublish?.(network, endpoint, endpoint.ports);
        driver.leave(network, endpoint);
      });
    });
  }

  /** The MTU of the containers' links: the setting, or the machine's. */
  mtu(): number {
    if (this.#bridge !== undefined) return this.#bridge.settings.mtu;
    if (this.settings.mtu !== 0) return this.settings.mtu;
    using route = new Netlink();
    return automaticMtu(route);
  }

  /** Removes bridge and rules from the machine, when a daemon ends without running containers. */
  async removeAll(): Promise<void> {
    const bridge = this.#bridge;
    this.#bridge = undefined;
    await bridge?.remove();
  }

  /** Closes sockets and ready sandboxes; containers keep their network. */
  [Symbol.dispose](): void {
    this.#bridge?.[Symbol.dispose]();
    this.#bridge = undefined;
  }

  /**
   * The bridge's address range: the setting, the stored one, the one of an existing bridge, or the first free range.
   */
  #place(): { subnet: string; gateway: string } | undefined {
    const { bridge, bip, dataRoot } = this.settings;
    if (bridge === 'none') return undefined;
    const stored = this.predefined('bridge');
    using route = new Netlink();
    const link = findBridge(route, bridge, dataRoot);
    if (bip !== '') {
      const { subnet, gateway } = parseBip(bip);
      return { subnet: cidrText(subnet), gateway: ipText(gateway) };
    }
    if (stored.subnet !== undefined && stored.gateway !== undefined && stored.bridge === bridge) {
      return { subnet: stored.subnet, gateway: stored.gateway };
    }
    const found = link === undefined ? undefined : addressOf(route, link);
    if (found !== undefined) {
      return { subnet: cidrText(rangeOf(parseIp(found.ip) ?? 0, found.prefixLength)), gateway: found.ip };
    }
    const subnet = chooseSubnet(rangesInUse(route));
    return { subnet: cidrText(subnet), gateway: gatewayOf(subnet) };
  }

  /** Running containers have addresses and routes of the old range, which cannot be changed from outside. */
  #refuseMove(stored: NetworkRecord, wanted: { bridge: string; subnet?: string; gateway?: string }): void {
    const moved =
      stored.bridge !== wanted.bridge || stored.subnet !== wanted.subnet || stored.gateway !== wanted.gateway;
    const members = this.membersOf(stored.id).length;
    if (!moved || members === 0) return;
    throw new EngineError(
      'conflict',
      `${members} running containers are on ${stored.bridge} (${stored.subnet}): stop them before the bridge moves to ` +
        `${wanted.bridge} (${wanted.subnet ?? 'no addresses'})`,
    );
  }
}

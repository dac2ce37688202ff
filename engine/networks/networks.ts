import { Netlink } from '../host/network/netlink.ts';
import { EngineError, refuseIf } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { chooseAddresses } from './addresses/choose.ts';
import { overlaps, parseCidr, type Cidr } from './addresses/cidr.ts';
import type { Surroundings } from './addresses/pools.ts';
import { parseBip, parseFixedCidrV6, uniqueLocalPrefix } from './addresses/subnets.ts';
import { automaticMtu, checkBridgeName, rangesInUse } from './bridge/bridge-link.ts';
import { bridgeNameOf, bridgeSettings, checkBridgeOptions } from './bridge/bridge-settings.ts';
import { Bridges } from './bridge/bridges.ts';
import { defaultRanges, refuseMove } from './bridge/default-range.ts';
import { bridgeDriver } from './bridge/driver.ts';
import { removeFromMachine } from './bridge/remove-from-machine.ts';
import type { Command } from './dns/commands.ts';
import { Dns } from './dns/dns.ts';
import type { NetworkDriver } from './drivers/driver.ts';
import { hostDriver, nullDriver } from './drivers/plain-drivers.ts';
import { hasAddress, type Endpoint } from './endpoints/endpoint.ts';
import { findIn } from './find.ts';
import type { NetworkSettings } from './needs.ts';
import { overLinkDriver } from './over-link/driver.ts';
import { ipvlan } from './over-link/ipvlan.ts';
import { macvlan } from './over-link/macvlan.ts';
import { overlayDriver } from './overlay/driver.ts';
import { notAttachable, Overlays } from './overlay/overlays.ts';
import { CleanupQueue } from './plugins/cleanup-queue.ts';
import { PluginDrivers } from './plugins/plugin-drivers.ts';
import { DEFAULT_NETWORK } from './settings/mode.ts';
import { NetworkStore, type NetworkRecord } from './store.ts';
import { NetworkUses } from './uses.ts';

/** Sources of addresses, in the words of the API: the engine, none, or a plugin. */
const OWN_ADDRESSES = 'default';
const NO_ADDRESSES = 'null';

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
  readonly dns: Dns;
  readonly overlays: Overlays;
  readonly uses: NetworkUses;
  readonly cleanups: CleanupQueue;
  readonly #ofPlugins: PluginDrivers;
  #bridges: Bridges | undefined;

  constructor(settings: NetworkSettings) {
    if (settings.bridge !== 'none') checkBridgeName(settings.bridge);
    if (settings.bip !== '') parseBip(settings.bip);
    if (settings.fixedCidrV6 !== '') parseFixedCidrV6(settings.fixedCidrV6);
    this.settings = settings;
    this.store = new NetworkStore(settings.db);
    this.uses = new NetworkUses(this.store);
    const { background, dnsFolder: folder } = settings;
    const elsewhere = (): Command[] => this.overlays.nameCommands();
    this.dns = new Dns({ background, folder, served: () => settings.served(this), elsewhere });
    this.overlays = new Overlays(this, settings.overlayFolder);
    const bridge = bridgeDriver({
      bridges: () => this.#bridges,
      create: (network) => this.#createBridge(network),
    });
    const { dataRoot } = settings;
    const forLinks = {
      ...{ background, dataRoot },
      networks: () => this.store.networks(),
      endpointsIn: (id: string) => this.store.endpointsIn(id),
      addressed: (network: NetworkRecord) => ({ ...network, ...this.#addresses(network, true) }),
    };
    const overLinks = [macvlan, ipvlan].map((kind) => overLinkDriver(forLinks, kind));
    const { db, log, plugins } = settings;
    this.cleanups = new CleanupQueue({ background, db, log, plugins });
    this.#ofPlugins = new PluginDrivers({
      ...{ plugins, cleanups: this.cleanups },
      networks: () => this.store.networks(),
      endpointsIn: (id) => this.store.endpointsIn(id),
      addressed: (network) => ({ ...network, ...this.#addresses(network) }),
      isTaken: (range) => {
        const { networks, machine } = this.#around([]);
        return [...networks, ...machine()].some((other) => overlaps(other, range));
      },
    });
    const overlay = overlayDriver(this.overlays);
    const drivers = [bridge, ...overLinks, overlay, hostDriver, nullDriver];
    this.#drivers = new Map(drivers.map((driver) => [driver.name, driver]));
    for (const { name, driver } of PREDEFINED) {
      if (this.#predefined(name) !== undefined) continue;
      this.store.saveNetwork({ id: newId(), name, driver, createdAt: settings.clock.now() });
    }
  }

  /** Sets up the bridges for the stored endpoints; those of dead containers must already be removed. */
  async start(): Promise<void> {
    const { background, dataRoot, log, bridge: name, proxyFolder, closedPorts } = this.settings;
    const stored = this.predefined('bridge');
    const place = name === 'none' ? undefined : defaultRanges(this.settings, stored);
    refuseMove(stored, { bridge: name, ...place }, this.membersOf(stored.id).length);
    if (stored.bridge !== undefined && stored.bridge !== name) {
      await removeFromMachine(`gantry-${stored.bridge}`, [stored.bridge], dataRoot);
    }
    if (place !== undefined) {
      const { ipv6: _earlier, ...unchanged } = this.predefined('bridge');
      this.store.saveNetwork({ ...unchanged, bridge: name, ...place });
    }
    const table = `gantry-${name === 'none' ? this.predefined('host').id.slice(0, 12) : name}`;
    const endpoints = (): Endpoint[] => this.store.endpoints().filter(hasAddress);
    this.#bridges = new Bridges({ table, dataRoot, proxyFolder, background, log, endpoints, closedPorts });
    const usualMtu = this.mtu();
    const networks = this.list().filter(({ driver }) => driver === 'bridge');
    this.#bridges.restore(
      networks.map((network) => bridgeSettings(network, usualMtu)),
      place === undefined ? undefined : stored.id,
    );
    this.overlays.restore();
    this.dns.restore();
    const made = new Set([...this.store.networks(), ...this.store.endpoints()].map(({ id }) => id));
    this.cleanups.restore((id) => made.has(id));
  }

  /** The networks with a bridge. Throws before the start. */
  bridges(): Bridges {
    if (this.#bridges === undefined) throw new EngineError('notFound', 'network bridge not found');
    return this.#bridges;
  }

  /** Has `closedPorts` count, as they have changed. */
  closePorts(): void {
    this.#bridges?.writeRules();
  }

  predefined(name: 'bridge' | 'host' | 'none'): NetworkRecord {
    const network = this.#predefined(name);
    if (network === undefined) throw new Error(`the predefined network ${name} has no record`);
    return network;
  }

  #predefined(name: string): NetworkRecord | undefined {
    return this.store.networksNamed(name).find(({ custom }) => custom === undefined);
  }

  /** All networks of this daemon; without a bridge there is no network `bridge`. */
  list(): NetworkRecord[] {
    const hasBridge = this.settings.bridge !== 'none';
    return this.store
      .networks()
      .filter(({ driver, custom }) => driver !== 'bridge' || custom !== undefined || hasBridge);
  }

  /** Finds a network by its id, its name, or a unique prefix of its id. */
  find(ref: string): NetworkRecord {
    const known = this.known(ref);
    if (known !== undefined) return known;
    throw this.settings.ofCluster(ref) === undefined
      ? new EngineError('notFound', `network ${ref} not found`)
      : notAttachable(ref, 'forbidden');
  }

  /** Like `find`, but undefined where this node does not know the network. */
  known(ref: string): NetworkRecord | undefined {
    try {
      return findIn(this.list(), ref);
    } catch (error) {
      if (error instanceof EngineError && error.kind === 'notFound') return undefined;
      throw error;
    }
  }

  /** The driver of this network. */
  driverOf({ driver, custom }: NetworkRecord): NetworkDriver {
    const found = this.#drivers.get(driver) ?? this.#ofPlugins.driver(driver);
    const ipam = custom?.ipam.driver ?? OWN_ADDRESSES;
    return ipam === OWN_ADDRESSES || ipam === NO_ADDRESSES ? found : this.#ofPlugins.addressed(found, ipam);
  }

  /**
   * The network of an endpoint, by id or name. Undefined for the default one on a daemon without a bridge: the container
   * then has loopback only. Throws `notFound`.
   */
  forEndpoint(ref: string): NetworkRecord | undefined {
    if (ref === DEFAULT_NETWORK && this.settings.bridge === 'none') return undefined;
    return this.find(ref);
  }

  /** Throws `failed` if a plugin that must be told of a network's end does not exist. */
  checkPlugin(name: string): void {
    if (this.settings.plugins.has(name)) return;
    const reason = `failed deleting network: plugin "${name}" not found`;
    throw new EngineError('failed', `error while removing network: ${reason}`);
  }

  /** Waits for the plugins that are to make a network, and start beside us. */
  async awaitPlugins(driver: string, ipam: string): Promise<void> {
    const { plugins } = this.settings;
    if (!this.#drivers.has(driver)) await plugins.appears(driver);
    if (ipam !== OWN_ADDRESSES && ipam !== NO_ADDRESSES) await plugins.appears(ipam);
  }

  /**
   * The whole names of a driver that makes networks, and of what gives them addresses. Throws `notFound` and, for host
   * and null, `forbidden`.
   */
  making(driver: string, ipam: string): { driver: string; ipam: string } {
    const own = this.#drivers.get(driver);
    if (own !== undefined && own.create === undefined) {
      throw new EngineError('forbidden', `only one instance of "${driver}" network is allowed`);
    }
    refuseIf(own !== undefined && ipam === NO_ADDRESSES, `networks of the driver ${driver} need addresses`);
    const isOwn = ipam === OWN_ADDRESSES || ipam === NO_ADDRESSES;
    return {
      driver: own === undefined ? this.#ofPlugins.nameOf(driver) : driver,
      ipam: isOwn ? ipam : this.#ofPlugins.nameOf(ipam),
    };
  }

  /** The containers that are in a network now. */
  membersOf(networkId: string): readonly Endpoint[] {
    return this.store.endpointsIn(networkId);
  }

  /** A container's endpoints while it runs: the same array as long as nothing changes. */
  endpointsOf(containerId: string): readonly Endpoint[] {
    return this.store.endpointsOf(containerId);
  }

  /** The ports that a container shows as exposed: none where all its networks are internal, as in dockerd. */
  exposedPorts(containerId: string, ports: Readonly<Record<string, unknown>> | null = {}): string[] {
    const isInternal = ({ networkId }: Endpoint): boolean => this.store.network(networkId)?.custom?.internal === true;
    return this.endpointsOf(containerId).every(isInternal) ? [] : Object.keys(ports ?? {});
  }

  /** Notes the calls to plugins after the end of an endpoint, in the same commit. Returns whether there are any. */
  queueCleanup(network: NetworkRecord, endpoint: Endpoint, isGateway: boolean): boolean {
    const { cleanupCalls } = this.driverOf(network);
    if (cleanupCalls === undefined) return false;
    this.cleanups.set(endpoint.id, network.id, cleanupCalls.endpoint(network, endpoint, isGateway));
    return true;
  }

  /** Frees the address and ports of an endpoint after its removal is committed, not before. */
  giveBack(network: NetworkRecord, endpoint: Endpoint, isGateway: boolean): void {
    const { background, db } = this.settings;
    const driver = this.driverOf(network);
    const isTold = this.queueCleanup(network, endpoint, isGateway);
    db.afterCommit(() => {
      if (isTold) this.cleanups.flushLater(endpoint.id);
      background.untilDone('free the ports of a container', { container: endpoint.containerId }, async () => {
        if (!isTold || endpoint.ports.length > 0) {
          const unpublished = driver.unpublish?.(network, endpoint, endpoint.ports);
          if (unpublished !== undefined) await unpublished;
        }
        // Without a plugin at once: the container's next start may follow in this turn.
        await driver.leave(network, endpoint);
      });
    });
  }

  /** The MTU of the containers' links: the setting, or the machine's. */
  mtu(): number {
    if (this.settings.mtu !== 0) return this.settings.mtu;
    using route = new Netlink();
    return automaticMtu(route);
  }

  /** Removes bridges and rules from the machine, when a daemon ends without running containers. */
  async removeAll(): Promise<void> {
    const bridges = this.#bridges;
    this.#bridges = undefined;
    this.overlays.removeAll();
    await this.dns.end();
    await bridges?.removeAll();
  }

  /** Closes sockets and ready sandboxes; containers keep their network. */
  [Symbol.dispose](): void {
    this.overlays[Symbol.dispose]();
    this.dns[Symbol.dispose]();
    this.#bridges?.[Symbol.dispose]();
    this.#bridges = undefined;
  }

  /** Completes a new network with a bridge, and sets it up. */
  #createBridge(network: NetworkRecord): NetworkRecord {
    checkBridgeOptions(network.custom?.options ?? {}, network.custom?.internal === true);
    const bridge = bridgeNameOf(network);
    checkBridgeName(bridge);
    const complete = { ...network, bridge, ...this.#addresses(network) };
    this.bridges().create(bridgeSettings(complete, this.mtu()));
    return complete;
  }

  /** None if a plugin has chosen them, or the network has none. */
  #addresses(network: NetworkRecord, takesSeveral = false): Partial<ReturnType<typeof chooseAddresses>> {
    if (network.leased !== undefined || network.custom?.ipam.driver === NO_ADDRESSES) return {};
    return chooseAddresses(network, (more) => this.#around(more), { takesSeveral });
  }

  #around(more: readonly Cidr[]): Surroundings {
    const stored = this.list().flatMap(({ subnet, ipv6, more = [] }) => {
      return [subnet ?? [], ipv6?.subnet ?? [], more.map((one) => one.subnet)].flat();
    });
    return {
      networks: [...stored.flatMap((subnet) => parseCidr(subnet)?.range ?? []), ...more],
      machine: () => {
        using route = new Netlink();
        return rangesInUse(route);
      },
      pools: this.settings.pools,
      uniqueLocal: uniqueLocalPrefix(this.predefined('host').id),
    };
  }
}

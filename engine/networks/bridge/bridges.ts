import type { Logger } from 'pino';

import { SystemError } from '../../host/libc.ts';
import { withNetns } from '../../host/namespaces.ts';
import { ChangeMonitor } from '../../host/network/change-monitor.ts';
import { forgetUdpFlows } from '../../host/network/conntrack.ts';
import { legacyFilterLayout } from '../../host/network/iptables.ts';
import { LinkRemoval } from '../../host/network/link-removal.ts';
import { Netlink } from '../../host/network/netlink.ts';
import type { Background } from '../../lib/concurrency/background.ts';
import { EngineError } from '../../lib/errors.ts';
import { isSix } from '../../lib/notations/ip-address.ts';
import type { Joined, WantedPlace, Within } from '../drivers/driver.ts';
import { addressesOf, hasAddress, type Endpoint, type Place } from '../endpoints/endpoint.ts';
import { dropAddresses } from '../endpoints/interfaces.ts';
import { ANY, ANY_SIX, isOnHost, type PublishedPort, type WantedPort } from '../endpoints/ports.ts';
import { ensureBridge, isOwnBridge, knownLinks, ownBridges, type KnownLinks } from './bridge-link.ts';
import { bridgeAddresses, type BridgeSettings } from './bridge-settings.ts';
import { Bridge } from './bridge.ts';
import { LoopbackProxies, selectProxied } from './ports/loopback-proxies.ts';
import { PortReservations } from './ports/port-reservations.ts';
import { checkHostIp, resolvePublishedPorts } from './ports/resolve-ports.ts';
import { Sandboxes } from './ready-sandboxes.ts';
import { removeFromMachine } from './remove-from-machine.ts';
import { Firewall } from './rules/firewall.ts';
import { admitLegacyForwarding } from './rules/legacy-forwarding.ts';
import type { ClosedPort } from './rules/ruleset.ts';

type BridgesSettings = Readonly<{
  /** Name of this daemon's table of rules. */
  table: string;
  dataRoot: string;
  /** For the locks of processes that serve ports. */
  proxyFolder: string;
  background: Background;
  log: Logger;
  /** The endpoints of all networks with a bridge. */
  endpoints: () => readonly Endpoint[];
  /** The machine's ports that containers do not reach. */
  closedPorts: () => readonly ClosedPort[];
}>;

/** The networks with a bridge: their links, their rules, their published ports, and the stock of ready sandboxes. */
export class Bridges implements Disposable {
  readonly #settings: BridgesSettings;
  readonly #route = new Netlink();
  readonly #netfilter = new Netlink('netfilter');
  readonly #removal = new LinkRemoval();
  readonly #ports = new PortReservations();
  readonly #bridges = new Map<string, Bridge>();
  readonly #firewall: Firewall;
  readonly #proxies: LoopbackProxies;
  /** For all networks but the default one, which has a stock of its own; made when the first is used. */
  #stock: Sandboxes | undefined;
  #ofDefault: { networkId: string; stock: Sandboxes } | undefined;
  #monitor: ChangeMonitor | undefined;
  // The state of the legacy tables when our rules were last seen there.
  #legacyLayout: string | undefined;

  constructor(settings: BridgesSettings) {
    this.#settings = settings;
    this.#proxies = new LoopbackProxies(settings.proxyFolder, settings.background);
    this.#firewall = new Firewall(settings.table, () => {
      const places = settings.endpoints().filter(({ networkId }) => this.#bridges.has(networkId));
      return {
        networks: [...this.#bridges.values()].map(({ rules }) => rules),
        published: places.flatMap((endpoint) => resolvePublishedPorts(endpoint, endpoint.ports)),
        closed: settings.closedPorts(),
        places,
      };
    });
    if (!this.#firewall.guardsNeighbours) {
      settings.log.warn(
        'containers can claim the addresses of their neighbours: the kernel has no nftables for bridges',
      );
    }
  }

  /**
   * At the daemon's start: sets up all networks and rules for the attached containers, without interrupting them.
   *
   * A user network that cannot be set up is logged and left out; a failure of the default one is thrown.
   */
  restore(networks: readonly BridgeSettings[], defaultId: string | undefined): void {
    const known = knownLinks(this.#route);
    for (const settings of networks) {
      try {
        this.#open(settings, settings.networkId === defaultId, known);
      } catch (error) {
        if (settings.networkId === defaultId) throw error;
        this.#settings.log.error({ err: error, network: settings.networkId }, 'a network cannot be set up');
      }
    }
    this.#bringBack(known);
    this.#firewall.write();
    this.#monitor = new ChangeMonitor('rules', () => this.#restoreRules());
    // Leftovers of interrupted creations and removals.
    const names = new Set(networks.map(({ name }) => name));
    for (const name of ownBridges(known, this.#settings.dataRoot)) if (!names.has(name)) this.#removeLink(name);
  }

  /** Writes all rules again, as closed ports have changed. */
  writeRules(): void {
    this.#firewall.write();
  }

  has(networkId: string): boolean {
    return this.#bridges.has(networkId);
  }

  /** The network with a bridge. Throws if the daemon could not set it up. */
  get(networkId: string): Bridge {
    const bridge = this.#bridges.get(networkId);
    if (bridge === undefined) throw new EngineError('notFound', `network ${networkId} not found`);
    return bridge;
  }

  /** Sandboxes in stock of the default network. */
  get ready(): number {
    return this.#ofDefault?.stock.ready ?? 0;
  }

  /** Sets up a new network. Throws `forbidden` when another has its bridge. */
  create(settings: BridgeSettings): void {
    const other = this.#bridges.values().find((bridge) => bridge.settings.name === settings.name);
    if (other !== undefined) {
      const [mine, theirs] = [settings, other.settings].map(({ networkId, name }) => `${networkId} (${name})`);
      const reason = 'networks have same bridge name';
      throw new EngineError('forbidden', `cannot create network ${mine}: conflicts with network ${theirs}: ${reason}`);
    }
    this.#open(settings, false);
    try {
      this.#firewall.addBridge(this.get(settings.networkId).rules);
    } catch (error) {
      this.remove(settings.networkId);
      throw error;
    }
  }

  /** Removes a network from the machine, its link in the background. A missing one is not an error. */
  remove(networkId: string): void {
    const bridge = this.#bridges.get(networkId);
    if (bridge === undefined) return;
    this.#bridges.delete(networkId);
    this.#firewall.deleteBridge(bridge.rules);
    const { name } = bridge.settings;
    if (isOwnBridge(this.#route, name, this.#settings.dataRoot)) this.#removeLink(name);
  }

  /** Restores the rules if other programs changed them. Nearly free if they did not. */
  async admit(networkId: string): Promise<void> {
    this.#firewall.verify();
    const layout = legacyFilterLayout();
    if (layout === undefined || layout === this.#legacyLayout) return;
    for (const { settings } of this.#bridges.values()) {
      if (settings.networkId === networkId) await admitLegacyForwarding(settings.name);
    }
    this.#legacyLayout = legacyFilterLayout();
  }

  join(networkId: string, wanted: WantedPlace): Joined {
    return this.get(networkId).join(wanted);
  }

  joinInto(networkId: string, wanted: WantedPlace, within: Within): Place {
    return this.get(networkId).joinInto(wanted, within);
  }

  /** `within`: the namespace stays, so the address is removed at once and the link in the background. */
  leave(networkId: string, place: Place, within: Within | undefined): void {
    if (within !== undefined) {
      using inside = withNetns(within.netns, () => new Netlink());
      dropAddresses(inside, place);
      this.#removeLink(place.link);
    }
    this.#bridges.get(networkId)?.leave(place);
  }

  /** Reserves the host ports and publishes them. All or none; none of an internal network. */
  publish(networkId: string, place: Place, wanted: readonly WantedPort[]): PublishedPort[] {
    const { isInternal, hostBinding, modes, trusted } = this.get(networkId).settings;
    if (wanted.length === 0 || isInternal) return [];
    using undo = new DisposableStack();
    const usual = hostBinding === ANY && place.ipv6 !== undefined ? [ANY, ANY_SIX] : [hostBinding];
    const isRouted = (ip: string): boolean => modes[isSix(ip) ? 6 : 4] === 'routed';
    const ports = wanted.flatMap((one) => {
      // As in dockerd, addresses of IPv4 are passed over in a network without it.
      const hostIps = (one.hostIp === '' ? usual : [one.hostIp]).filter((ip) => isSix(ip) || place.ipAddress !== '');
      for (const ip of hostIps) checkHostIp(ip, place);
      const { containerPort, protocol } = one;
      const routed = hostIps.filter(isRouted).map((hostIp) => ({ containerPort, protocol, hostIp, hostPort: 0 }));
      const translated = hostIps.filter((ip) => !isRouted(ip));
      const reserved = translated.length === 0 ? [] : this.#ports.reserve(one, translated);
      for (const port of reserved) undo.defer(() => this.#ports.release(port));
      return [...reserved.map((port) => (trusted.length === 0 ? port : { ...port, isDirect: true })), ...routed];
    });
    this.#firewall.publish(resolvePublishedPorts(place, ports));
    undo.defer(() => this.#firewall.unpublish(resolvePublishedPorts(place, ports)));
    this.#serve(place, ports);
    undo.move();
    return ports;
  }

  /** Unpublishes and frees the host ports; missing ones are not an error. */
  unpublish(place: Place, ports: readonly PublishedPort[]): void {
    this.#firewall.unpublish(resolvePublishedPorts(place, ports));
    this.#proxies.end(selectProxied(ports));
    for (const port of ports) this.#ports.release(port);
    this.#forgetFlows(place, ports);
  }

  /** Redirects published ports to another endpoint, which has addresses of the same families. */
  movePorts(from: Place, to: Place, ports: readonly PublishedPort[]): void {
    this.#firewall.movePorts(resolvePublishedPorts(from, ports), resolvePublishedPorts(to, ports));
    this.#proxies.end(selectProxied(ports));
    this.#serve(to, ports);
    this.#forgetFlows(from, ports);
  }

  /** Removes bridges and rules; attached containers lose their network. */
  async removeAll(): Promise<void> {
    const names = [...this.#bridges.values()].map(({ settings }) => settings.name);
    this[Symbol.dispose]();
    await removeFromMachine(this.#settings.table, names, this.#settings.dataRoot);
  }

  /** Closes sockets and ready sandboxes. Bridges and rules stay for the containers that still run. */
  [Symbol.dispose](): void {
    this.#bridges.clear();
    this.#ofDefault?.stock[Symbol.dispose]();
    this.#ofDefault = undefined;
    this.#stock?.[Symbol.dispose]();
    this.#stock = undefined;
    this.#monitor?.[Symbol.dispose]();
    this.#ports[Symbol.dispose]();
    this.#firewall[Symbol.dispose]();
    this.#route[Symbol.dispose]();
    this.#netfilter[Symbol.dispose]();
  }

  #open(settings: BridgeSettings, isDefault: boolean, known?: KnownLinks): void {
    const { networkId, name, mtu } = settings;
    const spec = { name, addresses: bridgeAddresses(settings), mtu, dataRoot: this.#settings.dataRoot };
    const { index, isForeign } = ensureBridge(this.#route, spec, known);
    const used = this.#settings.endpoints().filter((endpoint) => endpoint.networkId === networkId);
    if (isDefault) {
      const stock = new Sandboxes({ route: this.#route, bridge: index, mtu }, this.#settings.background);
      this.#ofDefault = { networkId, stock };
    }
    const own = isDefault ? this.#ofDefault?.stock : undefined;
    const stock = (): Sandboxes => own ?? this.#commonStock(mtu);
    const shared = { route: this.#route, firewall: this.#firewall };
    const parts = { ...shared, index, isForeign, stock, isStockOwn: isDefault };
    this.#bridges.set(networkId, new Bridge(settings, used.flatMap(addressesOf), parts));
  }

  #commonStock(mtu: number): Sandboxes {
    this.#stock ??= new Sandboxes({ route: this.#route, bridge: undefined, mtu }, this.#settings.background);
    return this.#stock;
  }

  /** Serves those of the ports that rules do not lead to the container. */
  #serve(place: Place, ports: readonly PublishedPort[]): void {
    const served = selectProxied(ports);
    for (const port of served) if (this.#ports.socketOf(port) === undefined) this.#ports.takeBack(port);
    this.#proxies.start(
      place,
      served.flatMap((port) => {
        const fd = this.#ports.socketOf(port);
        return fd === undefined ? [] : [{ port, fd }];
      }),
    );
  }

  /** After a restart: reserves the ports again, and attaches containers again whose bridge was removed. */
  #bringBack({ links }: KnownLinks): void {
    const attached = this.#settings.endpoints().filter(hasAddress);
    this.#proxies.prune(attached.map(({ ports }) => selectProxied(ports)));
    if (attached.length === 0) return;
    const lost = attached.flatMap(({ ports }) => {
      const served = selectProxied(ports);
      if (this.#proxies.isServing(served)) for (const port of served) this.#ports.leaveToProxy(port);
      return ports.filter((port) => isOnHost(port) && !this.#ports.isHeld(port) && !this.#ports.retake(port));
    });
    for (const endpoint of attached) {
      if (!this.#proxies.isServing(selectProxied(endpoint.ports))) this.#serve(endpoint, endpoint.ports);
    }
    for (const port of lost) this.#settings.log.warn({ port }, 'another program has taken a published port');
    for (const [networkId, endpoints] of Map.groupBy(attached, (endpoint) => endpoint.networkId)) {
      this.#bridges.get(networkId)?.reattach(endpoints, links);
    }
  }

  /** Another program has changed rules: missing ones are written again. */
  #restoreRules(): void {
    this.#settings.background.run('restore the packet rules', {}, () => this.#firewall.verify());
  }

  #removeLink(name: string): void {
    const { background } = this.#settings;
    background.run('remove a link', { link: name }, async () => await this.#removal.remove(name));
  }

  #forgetFlows(place: Place, ports: readonly PublishedPort[]): void {
    if (!ports.some(({ protocol }) => protocol === 'udp')) return;
    try {
      for (const target of addressesOf(place)) forgetUdpFlows(this.#netfilter, { target });
    } catch (error) {
      // A kernel that lists no flows: a client that never pauses waits until its flow times out.
      if (!(error instanceof SystemError)) throw error;
    }
  }
}

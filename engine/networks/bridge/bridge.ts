import { randomBytes } from 'node:crypto';

import { withNetns } from '../../host/namespaces.ts';
import { addNeighbour, pinToPort } from '../../host/network/addresses.ts';
import { changeLink, createVeth, getLink } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { isSix } from '../../lib/notations/ip-address.ts';
import { cidrText } from '../addresses/cidr.ts';
import { PlaceLeases } from '../addresses/place-leases.ts';
import type { Addresses } from '../addresses/pools.ts';
import type { Joined, WantedPlace, Within } from '../drivers/driver.ts';
import { addressesOf, type Endpoint, type Place } from '../endpoints/endpoint.ts';
import { applySysctls } from '../endpoints/interface-options.ts';
import { addressing, enableIPv6, freeInterfaceName, needsIPv6 } from '../endpoints/interfaces.ts';
import type { BridgeSettings } from './bridge-settings.ts';
import { disposeSandbox, distrustPair, type Sandbox, type Sandboxes } from './ready-sandboxes.ts';
import type { Firewall } from './rules/firewall.ts';
import type { BridgeRules } from './rules/ruleset.ts';

/** The parts that all bridges of a daemon share, and the stock of this one. */
type BridgeParts = Readonly<{
  route: Netlink;
  /** Index of the bridge's link. */
  index: number;
  /** The operator's. */
  isForeign: boolean;
  /** Sandboxes that are already on the bridge, or on none. */
  stock: () => Sandboxes;
  isStockOwn: boolean;
  /** Keeps others from claiming the addresses of a place, or ends that. */
  firewall: Pick<Firewall, 'addPlace' | 'deletePlace'>;
}>;

/** One network with a bridge: its addresses and endpoints. */
export class Bridge {
  readonly settings: BridgeSettings;
  readonly #parts: BridgeParts;
  readonly #leases: PlaceLeases;

  /** `used`: the addresses of the endpoints that are there already. */
  constructor(settings: BridgeSettings, used: readonly string[], parts: BridgeParts) {
    this.settings = settings;
    this.#parts = parts;
    this.#leases = new PlaceLeases(settings, used);
  }

  get index(): number {
    return this.#parts.index;
  }

  get rules(): BridgeRules {
    const { name, ipv4, ipv6, isInternal, allowsTraffic, isMasqueraded, modes, trusted } = this.settings;
    const gateways = [ipv4?.gateway ?? '', ipv6?.gateway ?? ''].filter((ip) => ip !== '');
    const subnets = { subnet: subnetText(ipv4), subnet6: subnetText(ipv6) };
    return {
      bridge: name,
      ...subnets,
      gateways,
      isForeign: this.#parts.isForeign,
      isInternal,
      allowsTraffic,
      isMasqueraded,
      modes,
      trusted,
    };
  }

  /** Leases a sandbox and an address, and sets the address. */
  join(wanted: WantedPlace): Joined {
    using undo = new DisposableStack();
    const lease = this.#leases.take(wanted, undo);
    const sandbox = this.#parts.stock().take();
    undo.defer(() => disposeSandbox(sandbox));
    if (!this.#parts.isStockOwn) this.#attach(sandbox.port.index);
    const place = { ...lease, link: sandbox.port.name };
    const name = this.#nameInterface(sandbox, wanted);
    if (needsIPv6(place, wanted)) withNetns(sandbox.netns, () => enableIPv6(name));
    this.#own(place, undo);
    this.#address(sandbox, place, { leadsOut: true, ...wanted });
    applySysctls(sandbox.netns, name, wanted);
    undo.move();
    sandbox.inside[Symbol.dispose](); // it would keep the namespace alive
    return { netns: sandbox.netns, place };
  }

  /** Like `join`, in an existing namespace, without a default route. */
  joinInto(wanted: WantedPlace, { netns }: Within): Place {
    using undo = new DisposableStack();
    const lease = this.#leases.take(wanted, undo);
    using inside = withNetns(netns, () => new Netlink());
    const name = `veth${randomBytes(4).toString('hex').slice(0, 7)}`;
    const peer = { name: freeInterfaceName(inside, wanted, this.settings.interfacePrefix), netns };
    const { route, index } = this.#parts;
    route.apply(createVeth({ name, master: index, mtu: this.settings.mtu, up: true, peer }));
    const port = getLink(route, name).index;
    undo.defer(() => route.apply(changeLink(port, { master: 0, up: false })));
    distrustPair(name, peer);
    this.#configurePort(port);
    const eth = getLink(inside, peer.name).index;
    const place = { ...lease, link: name };
    if (needsIPv6(place, wanted)) withNetns(netns, () => enableIPv6(peer.name));
    this.#own(place, undo);
    this.#address({ inside, eth0: eth, port: { index: port, name } }, place, { leadsOut: false, ...wanted });
    applySysctls(netns, peer.name, wanted);
    undo.move();
    return place;
  }

  /** Ready sandboxes have an `eth0`; kernels before 6.3 rename an interface only while it is down. */
  #nameInterface({ inside, eth0 }: Sandbox, wanted: WantedPlace): string {
    const { interfacePrefix } = this.settings;
    if (wanted.interfaceName === undefined && interfacePrefix === undefined) return 'eth0';
    if (wanted.interfaceName === 'eth0') return 'eth0';
    const name = freeInterfaceName(inside, wanted, interfacePrefix);
    inside.apply(changeLink(eth0, { up: false }), changeLink(eth0, { name }));
    return name;
  }

  #own(place: Place, undo: DisposableStack): void {
    this.#parts.firewall.addPlace(place);
    undo.defer(() => this.#parts.firewall.deletePlace(place));
  }

  /** Gives the addresses back. */
  leave(place: Place): void {
    this.#parts.firewall.deletePlace(place);
    this.#leases.release(place);
  }

  /** Reattaches containers whose bridge was removed. */
  reattach(endpoints: readonly Endpoint[], links: ReadonlyMap<string, { index: number; master: number }>): void {
    for (const { link, macAddress } of endpoints) {
      const port = links.get(link);
      if (port === undefined || port.master === this.index) continue;
      this.#attach(port.index);
      this.#parts.route.apply(changeLink(port.index, { up: true }), pinToPort(port.index, macAddress));
    }
  }

  #attach(port: number): void {
    const { route, index } = this.#parts;
    route.apply(changeLink(port, { master: index, mtu: this.settings.mtu }));
    this.#configurePort(port);
  }

  /** `hairpin`: with br_netfilter, a container that calls its own published port gets the answer through the same port. */
  #configurePort(port: number): void {
    this.#parts.route.apply(changeLink(port, { hairpin: true, isolated: !this.settings.allowsTraffic }));
  }

  #address(
    { inside, eth0, port }: Pick<Sandbox, 'inside' | 'eth0' | 'port'>,
    place: Place,
    { leadsOut, linkLocal }: { leadsOut: boolean } & WantedPlace,
  ): void {
    const { isInternal, modes, mtu } = this.settings;
    const { macAddress: mac } = place;
    inside.apply(
      changeLink(eth0, { mac, up: true, ...(!this.#parts.isStockOwn && { mtu }) }),
      ...addressing(eth0, place, { leadsOut: leadsOut && !isInternal, linkLocal }),
      // Announces the address to the neighbours, which may know another owner of it; for IPv4 by their hardware
      // addresses.
      ...(place.ipv6 === undefined ? [] : [changeLink(eth0, { mac })]),
    );
    const spoken = addressesOf(place).filter((ip) => modes[isSix(ip) ? 6 : 4] !== 'isolated');
    const neighbours = spoken.map((ip) => addNeighbour({ link: this.index, ip, mac }));
    this.#parts.route.apply(pinToPort(port.index, mac), ...neighbours);
  }
}

function subnetText(range: Addresses | undefined): string | undefined {
  return range === undefined ? undefined : cidrText(range.subnet);
}

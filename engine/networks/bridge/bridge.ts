import { randomBytes } from 'node:crypto';

import { withNetns } from '../../host/namespaces.ts';
import { addAddress, addNeighbour, addRoute, pinToPort } from '../../host/network/addresses.ts';
import { changeLink, createVeth, getLink, listLinks } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { AddressLeases, macOf } from '../addresses/address-leases.ts';
import { cidrText } from '../addresses/cidr.ts';
import type { Joined, WantedPlace, Within } from '../drivers/driver.ts';
import type { Endpoint, Place } from '../endpoints/endpoint.ts';
import { freeInterfaceName } from '../endpoints/interfaces.ts';
import type { BridgeSettings } from './bridge-settings.ts';
import { disposeSandbox, type Sandbox, type Sandboxes } from './ready-sandboxes.ts';
import type { BridgeRules } from './ruleset.ts';

/** What all bridges of a daemon share, and the stock of this one. */
export type BridgeParts = Readonly<{
  route: Netlink;
  /** Index of the bridge's link. */
  index: number;
  /** Sandboxes that are on the bridge already, or on none. */
  stock: () => Sandboxes;
  isStockOwn: boolean;
}>;

/** One network with a bridge: its addresses and the places in it. */
export class Bridge {
  readonly settings: BridgeSettings;
  readonly #parts: BridgeParts;
  readonly #addresses: AddressLeases;

  /** `used`: the addresses of the endpoints that are there already. */
  constructor(settings: BridgeSettings, used: readonly string[], parts: BridgeParts) {
    this.settings = settings;
    this.#parts = parts;
    const { subnet, range, gateway, auxiliary } = settings;
    this.#addresses = new AddressLeases(subnet, [gateway, ...auxiliary, ...used], range);
  }

  get index(): number {
    return this.#parts.index;
  }

  get rules(): BridgeRules {
    const { name, subnet, isInternal, allowsTraffic, isMasqueraded } = this.settings;
    return { bridge: name, subnet: cidrText(subnet), isInternal, allowsTraffic, isMasqueraded };
  }

  /** Leases a sandbox and an address, and sets the address. */
  join(wanted: WantedPlace): Joined {
    using undo = new DisposableStack();
    const { ipAddress, macAddress } = this.#lease(wanted, undo);
    const sandbox = this.#parts.stock().take();
    undo.defer(() => disposeSandbox(sandbox));
    if (!this.#parts.isStockOwn) this.#attach(sandbox.port.index);
    this.#address(sandbox, ipAddress, macAddress);
    undo.move();
    sandbox.inside[Symbol.dispose](); // it would keep the namespace alive
    return { netns: sandbox.netns, place: this.#place(sandbox.port.name, ipAddress, macAddress) };
  }

  /** The same in a namespace that is there already, without a default route. */
  joinInto(wanted: WantedPlace, { netns }: Within): Place {
    using undo = new DisposableStack();
    const { ipAddress, macAddress } = this.#lease(wanted, undo);
    using inside = withNetns(netns, () => new Netlink());
    const name = `veth${randomBytes(4).toString('hex').slice(0, 7)}`;
    const peer = { name: freeInterfaceName(inside), netns };
    const { route, index } = this.#parts;
    route.apply(createVeth({ name, master: index, mtu: this.settings.mtu, up: true, peer }));
    const port = getLink(route, name).index;
    undo.defer(() => route.apply(changeLink(port, { master: 0, up: false })));
    this.#configurePort(port);
    const eth = getLink(inside, peer.name).index;
    this.#address({ inside, eth0: eth, port: { index: port, name } }, ipAddress, macAddress, false);
    undo.move();
    return this.#place(name, ipAddress, macAddress);
  }

  /** Gives the address back. */
  leave(ipAddress: string): void {
    this.#addresses.release(ipAddress);
  }

  /** Brings containers back whose bridge was removed. */
  reattach(endpoints: readonly Endpoint[], links: ReadonlyMap<string, { index: number; master: number }>): void {
    for (const { link, macAddress } of endpoints) {
      const port = links.get(link);
      if (port === undefined || port.master === this.index) continue;
      this.#attach(port.index);
      this.#parts.route.apply(changeLink(port.index, { up: true }), pinToPort(port.index, macAddress));
    }
  }

  #lease({ ip, mac }: WantedPlace, undo: DisposableStack): { ipAddress: string; macAddress: string } {
    const ipAddress = this.#addresses.take(ip);
    undo.defer(() => this.#addresses.release(ipAddress));
    return { ipAddress, macAddress: mac ?? macOf(ipAddress) };
  }

  #place(link: string, ipAddress: string, macAddress: string): Place {
    const { subnet, gateway } = this.settings;
    return { link, ipAddress, prefixLength: subnet.prefixLength, gateway, macAddress };
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

  #address(place: Pick<Sandbox, 'inside' | 'eth0' | 'port'>, ip: string, mac: string, leadsOut?: boolean): void {
    const { inside, eth0, port } = place;
    const { subnet, gateway, isInternal, mtu } = this.settings;
    inside.apply(
      changeLink(eth0, { mac, up: true, ...(!this.#parts.isStockOwn && { mtu }) }),
      addAddress({ link: eth0, ip, prefixLength: subnet.prefixLength }),
      ...(leadsOut === false || isInternal ? [] : [addRoute({ destination: '0.0.0.0', prefixLength: 0, gateway })]),
    );
    this.#parts.route.apply(pinToPort(port.index, mac), addNeighbour({ link: this.index, ip, mac }));
  }
}

/** The machine's links by name. */
export function linksByName(route: Netlink): Map<string, { index: number; master: number }> {
  return new Map(listLinks(route).map((link) => [link.name, link]));
}

import type { Logger } from 'pino';

import { SystemError } from '../../host/libc.ts';
import { addAddress, addNeighbour, addRoute, pinToPort } from '../../host/network/addresses.ts';
import { forgetUdpFlows } from '../../host/network/conntrack.ts';
import { legacyFilterLayout } from '../../host/network/iptables.ts';
import { changeLink, listLinks } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import type { Background } from '../../lib/background.ts';
import { AddressLeases, macOf } from '../address-leases.ts';
import { parseCidr, type Cidr } from '../cidr.ts';
import type { Joined, WantedPlace } from '../driver.ts';
import type { Endpoint } from '../endpoint.ts';
import type { PublishedPort, WantedPort } from '../ports.ts';
import { ensureBridge, removeBridge } from './bridge-link.ts';
import { Firewall } from './firewall.ts';
import { admitLegacyForwarding, dropLegacyForwarding } from './legacy-forwarding.ts';
import { PortReservations } from './port-reservations.ts';
import { disposeSandbox, Sandboxes, type Sandbox } from './ready-sandboxes.ts';

export type BridgeSettings = Readonly<{
  name: string;
  subnet: string;
  gateway: string;
  mtu: number;
  dataRoot: string;
  background: Background;
  log: Logger;
}>;

/** One network with a bridge: its addresses, its ready sandboxes, its published ports and its rules. */
export class BridgeNetwork implements Disposable {
  readonly settings: BridgeSettings;
  readonly prefixLength: number;
  readonly #range: Cidr;
  readonly #endpoints: () => readonly Endpoint[];
  readonly #route = new Netlink();
  readonly #netfilter = new Netlink('netfilter');
  readonly #ports = new PortReservations();
  readonly #firewall: Firewall;
  readonly #sandboxes: Sandboxes;
  readonly #addresses: AddressLeases;
  readonly #bridge: number;
  // The state of the legacy tables when our rules were last seen there.
  #legacyLayout: string | undefined;

  /** Sets up bridge and rules for the attached containers, without interrupting them. */
  constructor(settings: BridgeSettings, endpoints: () => readonly Endpoint[]) {
    const range = parseCidr(settings.subnet)?.range;
    if (range === undefined) throw new Error(`the stored subnet ${settings.subnet} is invalid`);
    this.settings = settings;
    this.prefixLength = range.prefixLength;
    this.#range = range;
    this.#endpoints = endpoints;
    this.#bridge = ensureBridge(this.#route, { ...settings, prefixLength: range.prefixLength }).index;
    this.#addresses = new AddressLeases(this.#range, [
      settings.gateway,
      ...endpoints().map(({ ipAddress }) => ipAddress),
    ]);
    this.#bringBackPorts();
    this.#firewall = new Firewall(settings.name, () => ({
      networks: [{ bridge: settings.name, subnet: settings.subnet }],
      published: endpoints().flatMap(({ ipAddress, ports }) => ports.map((port) => ({ ipAddress, port }))),
    }));
    this.#firewall.write();
    const port = { route: this.#route, bridge: this.#bridge, mtu: settings.mtu };
    this.#sandboxes = new Sandboxes(port, settings.background);
  }

  /** Sandboxes in stock. */
  get ready(): number {
    return this.#sandboxes.ready;
  }

  /** Restores the rules if other programs changed them. Nearly free if they did not. */
  async admit(): Promise<void> {
    this.#firewall.verify();
    const layout = legacyFilterLayout();
    if (layout === undefined || layout === this.#legacyLayout) return;
    await admitLegacyForwarding(this.settings.name);
    this.#legacyLayout = legacyFilterLayout();
  }

  /** Leases a sandbox and an address, and sets the address. */
  join({ ip, mac }: WantedPlace): Joined {
    using undo = new DisposableStack();
    const ipAddress = this.#addresses.take(ip);
    undo.defer(() => this.#addresses.release(ipAddress));
    const macAddress = mac ?? macOf(ipAddress);
    const sandbox = this.#sandboxes.take();
    undo.defer(() => disposeSandbox(sandbox));
    this.#address(sandbox, ipAddress, macAddress);
    undo.move();
    sandbox.inside[Symbol.dispose](); // it would keep the namespace alive
    const { prefixLength } = this;
    const { gateway } = this.settings;
    return { netns: sandbox.netns, place: { link: sandbox.port.name, ipAddress, prefixLength, gateway, macAddress } };
  }

  /** Gives the address back. */
  leave(ipAddress: string): void {
    this.#addresses.release(ipAddress);
  }

  /** Reserves the host ports and publishes them. All or none. */
  publish(ipAddress: string, wanted: readonly WantedPort[]): PublishedPort[] {
    if (wanted.length === 0) return [];
    using undo = new DisposableStack();
    const ports = wanted.map((one) => {
      const port = this.#ports.reserve(one);
      undo.defer(() => this.#ports.release(port));
      return port;
    });
    this.#firewall.publish(ports.map((port) => ({ ipAddress, port })));
    undo.move();
    return ports;
  }

  /** Unpublishes and frees the host ports; missing ones are not an error. */
  unpublish(ipAddress: string, ports: readonly PublishedPort[]): void {
    this.#firewall.unpublish(ports.map((port) => ({ ipAddress, port })));
    for (const port of ports) this.#ports.release(port);
    if (ports.some(({ protocol }) => protocol === 'udp')) this.#forgetFlows(ipAddress);
  }

  /** Removes bridge and rules; attached containers lose their network. */
  async remove(): Promise<void> {
    this[Symbol.dispose]();
    await removeBridgeNetwork(this.settings.name, this.settings.dataRoot);
  }

  /** Closes sockets and ready sandboxes. Bridge and rules stay for the containers that still run. */
  [Symbol.dispose](): void {
    this.#sandboxes[Symbol.dispose]();
    this.#ports[Symbol.dispose]();
    this.#firewall[Symbol.dispose]();
    this.#route[Symbol.dispose]();
    this.#netfilter[Symbol.dispose]();
  }

  #address({ inside, eth0, port }: Sandbox, ip: string, mac: string): void {
    inside.apply(
      changeLink(eth0, { mac, up: true }),
      addAddress({ link: eth0, ip, prefixLength: this.prefixLength }),
      addRoute({ destination: '0.0.0.0', prefixLength: 0, gateway: this.settings.gateway }),
    );
    this.#route.apply(pinToPort(port.index, mac), addNeighbour({ link: this.#bridge, ip, mac }));
  }

  /** After a restart: reserves the ports again, and attaches containers again if the bridge was removed. */
  #bringBackPorts(): void {
    const attached = this.#endpoints();
    const lost = attached.flatMap(({ ports }) => ports.filter((port) => !this.#ports.retake(port)));
    for (const port of lost) this.settings.log.warn({ port }, 'another program has taken a published port');
    if (attached.length === 0) return;
    const links = new Map(listLinks(this.#route).map((link) => [link.name, link]));
    for (const { link, macAddress } of attached) {
      const port = links.get(link);
      if (port === undefined || port.master === this.#bridge) continue;
      this.#route.apply(
        changeLink(port.index, { master: this.#bridge, up: true }),
        changeLink(port.index, { hairpin: true }),
        pinToPort(port.index, macAddress),
      );
    }
  }

  #forgetFlows(ipAddress: string): void {
    try {
      forgetUdpFlows(this.#netfilter, ipAddress);
    } catch (error) {
      // Kernels before 6.10 cannot: there a client that never pauses waits until the flow times out.
      if (!(error instanceof SystemError)) throw error;
    }
  }
}

/** Removes bridge and rules of this daemon from the machine; missing ones are not an error. */
export async function removeBridgeNetwork(name: string, dataRoot: string): Promise<void> {
  using route = new Netlink();
  using firewall = new Firewall(name, () => ({ networks: [], published: [] }));
  firewall.remove();
  removeBridge(route, name, dataRoot);
  if (legacyFilterLayout() !== undefined) await dropLegacyForwarding(name);
}

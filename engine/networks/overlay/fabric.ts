import { closeSync } from 'node:fs';

import { withNetns } from '../../host/namespaces.ts';
import {
  addNeighbour,
  deleteNeighbour,
  listNeighbours,
  pinToPort,
  unpinFromPort,
} from '../../host/network/addresses.ts';
import {
  changeLink,
  createBridge,
  createVeth,
  deleteLink,
  findLink,
  getLink,
  type Link,
} from '../../host/network/links.ts';
import { Netlink, type Message } from '../../host/network/netlink.ts';
import { addForwarding, createVxlan, deleteForwarding } from '../../host/network/vxlan.ts';
import { hasCode } from '../../lib/errors.ts';
import { macOf } from '../addresses/address-leases.ts';
import { ensureNamedNetns, openNamedNetns, removeNamedNetns } from './named-netns.ts';

const BRIDGE = 'br0';
const TUNNEL = 'vxlan0';
/** The bridge has no address, so its own is never asked for. */
const BRIDGE_MAC = '02:42:00:00:00:01';
/** Addresses with three entries each: as many answers as a socket holds. */
const BATCH = 33;
/** The kernel's refusals of a host: of another family than the tunnel, or none that packets are sent to. */
const BAD_HOST = ['EAFNOSUPPORT', 'EINVAL', 'EADDRNOTAVAIL'];

type FabricSettings = Readonly<{
  /** Where the namespace is mounted. */
  path: string;
  vni: number;
  /** The port of the tunnel on all hosts. */
  port: number;
  /** The address of this host for the others. */
  local: string;
  /** MTU of the containers' links. */
  mtu: number;
}>;

/**
 * One overlay on this host: a namespace with a bridge, whose ports are the containers here and the tunnel to the others.
 *
 * The kernel keeps all of it when the daemon is gone; `open` finds it again, and completes what a killed daemon began.
 */
export class Fabric implements Disposable {
  readonly #path: string;
  readonly #inside: Netlink;
  readonly #bridge: number;
  readonly #tunnel: number;
  readonly #mtu: number;
  /** The hosts of the addresses elsewhere, as the kernel has them; undefined until this daemon has written them. */
  #remote: ReadonlyMap<string, string> | undefined;

  private constructor(path: string, inside: Netlink, links: { bridge: Link; tunnel: Link }) {
    this.#path = path;
    this.#inside = inside;
    this.#bridge = links.bridge.index;
    this.#tunnel = links.tunnel.index;
    this.#mtu = links.tunnel.mtu;
  }

  /** `route`: a socket in the host's namespace. */
  static open(route: Netlink, { path, vni, port, local, mtu }: FabricSettings): Fabric {
    const netns = ensureNamedNetns(path);
    try {
      using undo = new DisposableStack();
      const inside = undo.use(withNetns(netns, () => new Netlink()));
      if (findLink(inside, BRIDGE) === undefined) inside.apply(createBridge({ name: BRIDGE, mac: BRIDGE_MAC, mtu }));
      const bridge = getLink(inside, BRIDGE);
      if (findLink(inside, TUNNEL) === undefined) {
        route.apply(createVxlan({ name: TUNNEL, vni, local, port, mtu, netns }));
      }
      const tunnel = getLink(inside, TUNNEL);
      inside.apply(
        changeLink(tunnel.index, { master: bridge.index, up: true }),
        changeLink(bridge.index, { mtu: tunnel.mtu, up: true }),
      );
      undo.move();
      return new Fabric(path, inside, { bridge, tunnel });
    } finally {
      closeSync(netns);
    }
  }

  /** Removes an overlay from this host, also one that was made in part. A missing one is not an error. */
  static remove(path: string): void {
    const netns = openNamedNetns(path);
    if (netns !== undefined) {
      try {
        using inside = withNetns(netns, () => new Netlink());
        // At once, not with the namespace: its number is free for the next network then.
        for (const name of [TUNNEL, BRIDGE]) {
          const link = findLink(inside, name);
          if (link !== undefined) inside.apply(deleteLink(link.index));
        }
      } finally {
        closeSync(netns);
      }
    }
    removeNamedNetns(path);
  }

  remove(): void {
    this[Symbol.dispose]();
    Fabric.remove(this.#path);
  }

  /**
   * Adds a link between the bridge and a container's namespace, and returns its index there. One of that name, left by a
   * daemon that was killed, is replaced.
   *
   * @param netns an open descriptor
   */
  addPort(netns: number, name: string, ip: string): number {
    const mac = macOf(ip);
    using within = withNetns(netns, () => new Netlink());
    const old = findLink(within, name);
    if (old !== undefined) within.apply(deleteLink(old.index));
    const port = portName(ip);
    this.removePort(ip);
    const peer = { name, mac, netns };
    this.#inside.apply(createVeth({ name: port, master: this.#bridge, mtu: this.#mtu, up: true, peer }));
    const { index } = getLink(this.#inside, port);
    this.#inside.apply(pinToPort(index, mac));
    return getLink(within, name).index;
  }

  /** Removes the link of an address; a missing one is not an error. */
  removePort(ip: string): void {
    const link = findLink(this.#inside, portName(ip));
    if (link !== undefined) this.#inside.apply(deleteLink(link.index));
  }

  /**
   * Leads addresses to their hosts: all that are not on this one. Returns the hosts that the kernel takes for no end of a
   * tunnel, such as those of another family; other addresses are led all the same.
   */
  reach(remote: ReadonlyMap<string, string>): Set<string> {
    const before = this.#remote ?? this.#found();
    this.#remote = undefined; // until all is written
    const gone = [...before.keys()].filter((ip) => !remote.has(ip));
    const changed = [...remote].filter(([ip, host]) => before.get(ip) !== host);
    this.#removeAll(gone.flatMap((ip) => this.#removal(ip)));
    const refused = this.#addAll(changed);
    this.#remote = new Map([...remote].filter(([, host]) => !refused.has(host)));
    return refused;
  }

  [Symbol.dispose](): void {
    this.#inside[Symbol.dispose]();
  }

  /** The neighbour comes last and goes last: an address that has one is known to have the others. */
  #entries(ip: string, host: string): Message[] {
    const mac = macOf(ip);
    return [
      addForwarding({ link: this.#tunnel, mac, host }),
      pinToPort(this.#tunnel, mac),
      addNeighbour({ link: this.#tunnel, ip, mac }, { forGood: true }),
    ];
  }

  #removal(ip: string): Message[] {
    const mac = macOf(ip);
    return [
      deleteForwarding({ link: this.#tunnel, mac }),
      ...(this.#isPinned(ip) ? [] : [unpinFromPort(this.#tunnel, mac)]),
      deleteNeighbour({ link: this.#tunnel, ip }),
    ];
  }

  /** Whether the address is on this host now, so that its entry in the bridge is another one. */
  #isPinned(ip: string): boolean {
    return findLink(this.#inside, portName(ip)) !== undefined;
  }

  /** Rules of an earlier daemon by chain; their hosts are not read. */
  #found(): Map<string, string> {
    const neighbours = listNeighbours(this.#inside).filter(({ link }) => link === this.#tunnel);
    return new Map(neighbours.map(({ ip }) => [ip, '']));
  }

  /** Adds many at a time, and each by itself where the kernel refuses one. Returns the refused hosts. */
  #addAll(addresses: readonly (readonly [ip: string, host: string])[]): Set<string> {
    const refused = new Set<string>();
    for (let at = 0; at < addresses.length; at += BATCH) {
      const batch = addresses.slice(at, at + BATCH);
      if (this.#isTaken(batch)) continue;
      for (const [ip, host] of batch) {
        if (this.#isTaken([[ip, host]])) continue;
        this.#removeAll(this.#removal(ip)); // the part of it that was taken
        refused.add(host);
      }
    }
    return refused;
  }

  #isTaken(addresses: readonly (readonly [ip: string, host: string])[]): boolean {
    try {
      this.#inside.apply(...addresses.flatMap(([ip, host]) => this.#entries(ip, host)));
      return true;
    } catch (error) {
      if (BAD_HOST.some((code) => hasCode(error, code))) return false;
      throw error;
    }
  }

  /** Each by itself: an earlier daemon, or the end of a link, may have removed it. */
  #removeAll(messages: readonly Message[]): void {
    for (const message of messages) {
      try {
        this.#inside.apply(message);
      } catch (error) {
        if (!hasCode(error, 'ENOENT')) throw error;
      }
    }
  }
}

/** The bridge's end of a container's link. */
function portName(ip: string): string {
  return `v${macOf(ip).slice(6).replaceAll(':', '')}`;
}

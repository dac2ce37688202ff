import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import type { Logger } from 'pino';

import { listAddresses } from '../../host/network/addresses.ts';
import { listLinks } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { VXLAN_OVERHEAD } from '../../host/network/vxlan.ts';
import { mtuOption } from '../settings/options.ts';
import type { NetworkRecord } from '../store.ts';
import { Fabric } from './fabric.ts';
import { VxlanGuard } from './guard.ts';

const USUAL_MTU = 1500;

/** `nodes`: the addresses of the other nodes with a part of the network; `refused`: those that the kernel does not take. */
type Open = Readonly<{ fabric: Fabric; vni: number; local: string; nodes: ReadonlySet<string>; refused: string }>;

/** The overlays that this daemon has opened, each in a namespace below a folder. */
export class Fabrics implements Disposable {
  readonly #folder: string;
  readonly #log: Logger;
  readonly #port: () => number;
  readonly #open = new Map<string, Open>();
  #route: Netlink | undefined;
  #guard: VxlanGuard | undefined;

  /** `port`: that of the tunnels on all nodes. */
  constructor(folder: string, log: Logger, port: () => number) {
    this.#folder = folder;
    this.#log = log;
    this.#port = port;
  }

  /** Undefined while it is not open. */
  get(id: string): Fabric | undefined {
    return this.#open.get(id)?.fabric;
  }

  /** Finds a network in the kernel, or makes it, and leads the addresses elsewhere to their nodes, and theirs here. */
  lead(network: NetworkRecord, remote: ReadonlyMap<string, string>): Fabric {
    const known = this.#open.get(network.id);
    const { fabric, vni, local } = known ?? this.#make(network);
    const nodes = new Set(remote.values());
    this.#open.set(network.id, { fabric, vni, local, nodes, refused: known?.refused ?? '' });
    this.#noteRefused(network.id, fabric.reach(remote));
    if (known === undefined || known.nodes.symmetricDifference(nodes).size > 0) this.#guardPort();
    return fabric;
  }

  /** Removes a network from the kernel; a missing one is not an error. */
  remove(id: string): void {
    this.get(id)?.[Symbol.dispose]();
    this.#open.delete(id);
    Fabric.remove(join(this.#folder, id));
    if (this.#guard !== undefined) this.#guardPort();
  }

  /** Removes all but those that are wanted, also of earlier daemons; `other`: a name in the folder that is no overlay. */
  removeOthers(isWanted: (id: string) => boolean, other: string): void {
    if (!existsSync(this.#folder)) return;
    for (const name of readdirSync(this.#folder)) if (name !== other && !isWanted(name)) this.remove(name);
  }

  [Symbol.dispose](): void {
    for (const { fabric } of this.#open.values()) fabric[Symbol.dispose]();
    this.#open.clear();
    this.#route?.[Symbol.dispose]();
    this.#route = undefined;
  }

  /** Logs nodes that cannot be reached, once for the same ones: they cost others nothing. */
  #noteRefused(id: string, hosts: ReadonlySet<string>): void {
    const open = this.#open.get(id)!;
    const refused = [...hosts].toSorted().join(' ');
    if (refused === open.refused) return;
    this.#open.set(id, { ...open, refused });
    if (refused !== '')
      this.#log.warn({ network: id, nodes: refused }, 'ignoring nodes of a network with unusable addresses');
  }

  #make({ id, overlay, custom }: NetworkRecord): Omit<Open, 'nodes' | 'refused'> {
    const { vni, local } = overlay!;
    this.#route ??= new Netlink();
    const mtu = (mtuOption(custom?.options ?? {}) || mtuAt(this.#route, local)) - VXLAN_OVERHEAD;
    const settings = { path: join(this.#folder, id), vni, port: this.#port(), local, mtu };
    return { fabric: Fabric.open(this.#route, settings), vni, local };
  }

  #guardPort(): void {
    this.#guard ??= new VxlanGuard(this.#folder);
    const open = [...this.#open.values()];
    this.#guard.write(
      open,
      this.#port(),
      open.flatMap(({ nodes }) => [...nodes]),
    );
  }
}

/** The MTU of the link that has an address of this host, Ethernet's at most: hosts have to agree on it. */
function mtuAt(route: Netlink, ip: string): number {
  const link = listAddresses(route).find((address) => address.ip === ip)?.link;
  const mtu = listLinks(route).find(({ index }) => index === link)?.mtu ?? USUAL_MTU;
  return Math.min(mtu, USUAL_MTU);
}

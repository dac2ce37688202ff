import { randomBytes } from 'node:crypto';

import { withNetns } from '../../host/namespaces.ts';
import { ChangeMonitor } from '../../host/network/change-monitor.ts';
import { changeLink, macText } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import type { Background } from '../../lib/concurrency/background.ts';
import { hasCode } from '../../lib/errors.ts';
import { LEAVE_TIMEOUT_MS } from './leaving-links.ts';

/**
 * Brings up a new link. Two links over a parent cannot have the same hardware address, and the link of an ended
 * container exists until the kernel has removed its namespace. Until then the new link has a temporary address.
 */
export function bringUp(inside: Netlink, index: number): void {
  try {
    inside.apply(changeLink(index, { up: true }));
  } catch (error) {
    if (!hasCode(error, 'EADDRINUSE')) throw error;
    const own = macText(Buffer.concat([Buffer.from([0x02, 0x42]), randomBytes(4)]));
    inside.apply(changeLink(index, { mac: own, up: true }));
  }
}

/** A link that waits for its address, by a socket in its namespace. */
type Waiting = Readonly<{ inside: Netlink; index: number; mac: string; held: DisposableStack }>;

/** The hardware addresses of links that have been brought up. */
export class HardwareAddresses {
  readonly #background: Background;
  readonly #waiting = new Set<Waiting>();
  #monitor: ChangeMonitor | undefined;

  constructor(background: Background) {
    this.#background = background;
  }

  /** Sets a link's address, at once or as soon as no other link has it, and announces it to the neighbours. */
  settle(netns: number, index: number, mac: string): void {
    using held = new DisposableStack();
    const inside = held.use(withNetns(netns, () => new Netlink()));
    if (isAddressSet(inside, index, mac)) return;
    const one: Waiting = { inside, index, mac, held: held.move() };
    this.#waiting.add(one);
    const expired = (): void => {
      this.#end(one);
      throw new Error(`another link keeps the hardware address ${mac}`);
    };
    one.held.use(this.#background.after(LEAVE_TIMEOUT_MS, 'set a hardware address', { mac }, expired));
    // A link that leaves its parent is told as a change of the parent, which is in this namespace.
    this.#monitor ??= new ChangeMonitor('links', () => this.#retry());
    this.#retry(); // it may have left before
  }

  #retry(): void {
    for (const one of this.#waiting) {
      this.#background.run('set a hardware address', { mac: one.mac }, () => this.#try(one));
    }
  }

  #try(one: Waiting): void {
    let isOver = true;
    try {
      isOver = isAddressSet(one.inside, one.index, one.mac);
    } finally {
      if (isOver) this.#end(one);
    }
  }

  #end(one: Waiting): void {
    this.#waiting.delete(one);
    one.held[Symbol.dispose]();
    if (this.#waiting.size > 0) return;
    this.#monitor?.[Symbol.dispose]();
    this.#monitor = undefined;
  }
}

function isAddressSet(there: Netlink, index: number, mac: string): boolean {
  try {
    there.apply(changeLink(index, { mac }));
    return true;
  } catch (error) {
    if (hasCode(error, 'EADDRINUSE')) return false;
    if (hasCode(error, 'ENODEV')) return true; // it has left meanwhile
    throw error;
  }
}

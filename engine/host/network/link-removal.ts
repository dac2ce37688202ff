import { hasCode } from '../../lib/errors.ts';
import { deleteLinks, getLink } from './links.ts';
import { Netlink } from './netlink.ts';

/**
 * Removes links by name, off the event loop: the kernel blocks a caller for some 15 ms per veth.
 *
 * Requests during a removal are collected for the next one. A missing link is not an error.
 */
export class LinkRemoval {
  readonly #wanted = new Set<string>();
  #running: Promise<void> | undefined;

  /** Resolves when the link is gone. */
  async remove(name: string): Promise<void> {
    this.#wanted.add(name);
    while (this.#wanted.has(name) || this.#running !== undefined) {
      this.#running ??= this.#removeWanted().finally(() => (this.#running = undefined));
      await this.#running;
    }
  }

  async #removeWanted(): Promise<void> {
    const names = [...this.#wanted];
    this.#wanted.clear();
    // A socket for each removal: a daemon that ends closes no socket on which a thread waits.
    using route = new Netlink();
    const indexes = names.flatMap((name) => indexOf(route, name));
    if (indexes.length > 0) await route.applyInBackground(...deleteLinks(indexes));
  }
}

function indexOf(route: Netlink, name: string): number[] {
  try {
    return [getLink(route, name).index];
  } catch (error) {
    if (hasCode(error, 'ENODEV')) return [];
    throw error;
  }
}

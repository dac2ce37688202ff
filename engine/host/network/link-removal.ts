import { hasCode } from '../../lib/errors.ts';
import { deleteLink, getLink } from './links.ts';
import { Netlink } from './netlink.ts';

/**
 * Removes links by name, off the event loop: the kernel blocks a caller for some 15 ms per veth.
 *
 * Links that are asked for while a removal runs are removed together in the next one. A missing link is not an error.
 */
export class LinkRemoval implements Disposable {
  readonly #route = new Netlink();
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

  [Symbol.dispose](): void {
    this.#route[Symbol.dispose]();
  }

  async #removeWanted(): Promise<void> {
    const names = [...this.#wanted];
    this.#wanted.clear();
    const indexes = names.flatMap((name) => this.#indexOf(name));
    if (indexes.length === 0) return;
    await this.#route.applyInBackground(...indexes.map(deleteLink));
  }

  #indexOf(name: string): number[] {
    try {
      return [getLink(this.#route, name).index];
    } catch (error) {
      if (hasCode(error, 'ENODEV')) return [];
      throw error;
    }
  }
}

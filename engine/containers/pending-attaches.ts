import type { Shim } from '../runtime/shim.ts';

type Connect = (shim: Shim) => Promise<void>;

/** Clients that attached before the start: they are connected before the first byte can be written. */
export class PendingAttaches {
  readonly #waiting = new Map<string, Set<Connect>>();

  /** Calls `connect` with the container's next shim; disposing takes it back. */
  add(id: string, connect: Connect): Disposable {
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    waiting.add(connect);
    return {
      [Symbol.dispose]: () => {
        waiting.delete(connect);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
      },
    };
  }

  async connectAll(id: string, shim: Shim): Promise<void> {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    await Promise.all([...waiting].map(async (connect) => await connect(shim)));
  }
}

import type { Shim } from '../runtime/shim.ts';

type Waiting = Readonly<{
  /** Resolves when the shim has accepted the client. */
  connect: (shim: Shim) => Promise<void>;
  /** The container is removed: there will be no start. */
  cancel: () => void;
}>;

/** Clients that attached before the start: they are connected before the first byte can be written. */
export class PendingAttaches {
  readonly #waiting = new Map<string, Set<Waiting>>();

  /** For the container's next start; disposing takes it back. */
  add(id: string, client: Waiting): Disposable {
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    waiting.add(client);
    return {
      [Symbol.dispose]: () => {
        waiting.delete(client);
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
      },
    };
  }

  async connectAll(id: string, shim: Shim): Promise<void> {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    await Promise.all([...waiting].map(async ({ connect }) => await connect(shim)));
  }

  cancelAll(id: string): void {
    for (const { cancel } of this.#waiting.get(id) ?? []) cancel();
  }
}

import type { Shim } from '../../runtime/shim.ts';

type Waiting = Readonly<{
  /** Resolves when the shim has accepted the client. */
  connect: (shim: Shim) => Promise<void>;
  /** The container is removed: there will be no start. */
  cancel: () => void;
}>;

/** Clients that attached before the start: they are connected before the first byte can be written. */
export class PendingAttaches {
  readonly #waiting = new Map<string, Set<Waiting>>();
  readonly #starting = new Map<string, Shim>();

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

  /** The shim of a start that is under way: who comes too late to be waited for connects to it at once. */
  starting(id: string): Shim | undefined {
    return this.#starting.get(id);
  }

  /** Connects those who wait. Dispose what is returned when the start has come to its end, good or bad. */
  async connectAll(id: string, shim: Shim): Promise<Disposable> {
    const waiting = this.#waiting.get(id) ?? [];
    this.#waiting.delete(id);
    this.#starting.set(id, shim);
    await Promise.all([...waiting].map(async ({ connect }) => await connect(shim)));
    return {
      [Symbol.dispose]: () => {
        if (this.#starting.get(id) === shim) this.#starting.delete(id);
      },
    };
  }

  cancelAll(id: string): void {
    for (const { cancel } of this.#waiting.get(id) ?? []) cancel();
  }
}

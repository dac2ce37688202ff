import type { Shim } from '../runtime/shim.ts';

type BeforeStart = (shim: Shim) => Promise<unknown>;

/** The shims of the containers that run, and what has to happen before one that is about to run is started. */
export class Shims {
  readonly #byId = new Map<string, Shim>();
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, Set<BeforeStart>>();

  get(id: string): Shim | undefined {
    return this.#byId.get(id);
  }

  add(id: string, shim: Shim): void {
    this.#byId.set(id, shim);
  }

  /** The container's run is over; `gone` resolves when nothing of the runtime's is left of it. */
  remove(id: string, gone: Promise<void>): void {
    this.#byId.delete(id);
    const leaving = gone.finally(() => {
      if (this.#leaving.get(id) === leaving) this.#leaving.delete(id);
    });
    this.#leaving.set(id, leaving);
  }

  /** Resolves when the last run's remains are gone: the runtime refuses an id that it still has. */
  async cleared(id: string): Promise<void> {
    await this.#leaving.get(id);
  }

  /** Calls back with the shim of the next start, before the process runs; the start waits for it. */
  beforeStart(id: string, callback: BeforeStart): Disposable {
    const callbacks = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, callbacks.add(callback));
    return {
      [Symbol.dispose]: () => {
        callbacks.delete(callback);
        if (callbacks.size === 0 && this.#waiting.get(id) === callbacks) this.#waiting.delete(id);
      },
    };
  }

  /** Lets everyone who waits for this start meet the shim. */
  async introduce(id: string, shim: Shim): Promise<void> {
    const callbacks = this.#waiting.get(id);
    if (callbacks === undefined) return;
    this.#waiting.delete(id);
    await Promise.all([...callbacks].map(async (callback) => await callback(shim)));
  }
}

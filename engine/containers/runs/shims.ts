import { EngineError } from '../../lib/errors.ts';
import { ShimLost, type Shim } from '../../runtime/shim.ts';

/** The shims of the containers that run, and what goes on after the end of a run. */
export class Shims {
  readonly #byId = new Map<string, Shim>();
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #unclear = new Set<string>();

  /** Whether it is not known, since the daemon's start, what became of the container. */
  isUnclear(id: string): boolean {
    return this.#unclear.has(id);
  }

  setUnclear(id: string, isUnclear: boolean): void {
    if (isUnclear) this.#unclear.add(id);
    else this.#unclear.delete(id);
  }

  get(id: string): Shim | undefined {
    return this.#byId.get(id);
  }

  add(id: string, shim: Shim): void {
    this.#byId.set(id, shim);
    this.#unclear.delete(id);
  }

  /** A process that has ended already, or whose shim has, needs none: its end is about to be recorded. */
  async signal(id: string, signal: number): Promise<void> {
    try {
      await this.#byId.get(id)?.signal(signal);
    } catch (error) {
      const hasEnded = error instanceof ShimLost || (error instanceof EngineError && error.kind === 'conflict');
      if (!hasEnded) throw error;
    }
  }

  /** The container's run is over; `gone` resolves when nothing of the runtime's is left of it, and never rejects. */
  remove(id: string, gone: Promise<void>): void {
    this.#byId.delete(id);
    const tracked = gone.finally(() => {
      if (this.#leaving.get(id) === tracked) this.#leaving.delete(id);
    });
    this.#leaving.set(id, tracked);
  }

  /** Resolves when the last run's remains are gone: the runtime refuses an id that it still has. */
  async cleaned(id: string): Promise<void> {
    await this.#leaving.get(id);
  }
}

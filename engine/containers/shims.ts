import type { Shim } from '../runtime/shim.ts';

type FailureLog = { error(details: object, message: string): void };

/** The shims of the containers that run, and what goes on after the end of a run. */
export class Shims {
  readonly #byId = new Map<string, Shim>();
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #log: FailureLog;

  constructor(log: FailureLog) {
    this.#log = log;
  }

  get(id: string): Shim | undefined {
    return this.#byId.get(id);
  }

  add(id: string, shim: Shim): void {
    this.#byId.set(id, shim);
  }

  /** The container's run is over; `gone` resolves when nothing of the runtime's is left of it. */
  remove(id: string, gone: Promise<void>): void {
    this.#byId.delete(id);
    this.#track(id, gone);
  }

  /** Does `work` in the background, when the last run's remains are gone. */
  afterwards(id: string, work: () => Promise<void>): void {
    this.#track(id, this.cleaned(id).then(work));
  }

  /** Resolves when the last run's remains are gone: the runtime refuses an id that it still has. */
  async cleaned(id: string): Promise<void> {
    await this.#leaving.get(id);
  }

  /** Resolves when nothing goes on in the background any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#leaving.values());
  }

  #track(id: string, work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => this.#log.error({ err: error, container: id }, 'something of a container is left'))
      .finally(() => {
        if (this.#leaving.get(id) === tracked) this.#leaving.delete(id);
      });
    this.#leaving.set(id, tracked);
  }
}

import type { Cgroups } from '../../host/cgroups.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ContainerStore } from '../store.ts';
import { readSample, type Sample } from './sample.ts';

type Needs = { clock: Clock; containers: ContainerStore };

const PERIOD_MS = 1000;

/**
 * The readings of one container that is watched. A tick only wakes those who wait; the first who then takes the reading
 * makes it, so that nothing is read for clients who are all too slow.
 */
export class Sampler {
  readonly #needs: Needs;
  readonly #id: string;
  readonly #cgroups: Cgroups;
  readonly #waiting = new Set<() => void>();
  #latest: Sample | undefined;
  #isDue = true;
  #streams = 0;
  #timer: Disposable | undefined;

  constructor(needs: Needs, id: string, cgroups: Cgroups) {
    this.#needs = needs;
    this.#id = id;
    this.#cgroups = cgroups;
  }

  /** The reading of this tick; undefined when the container is removed. */
  take(): Sample | undefined {
    return this.#isDue ? this.read() : this.#latest;
  }

  /** A reading of this moment. */
  read(): Sample | undefined {
    const container = this.#needs.containers.get(this.#id);
    if (container === undefined) return undefined;
    this.#latest = readSample(this.#cgroups, container, this.#needs.clock.now());
    this.#isDue = false;
    return this.#latest;
  }

  /** The last reading, if there is one after this time. */
  since(earliest: Temporal.Instant): Sample | undefined {
    const latest = this.#latest;
    return latest !== undefined && Temporal.Instant.compare(latest.at, earliest) >= 0 ? latest : undefined;
  }

  /** Ticks, until the result is disposed of. */
  ticking(): Disposable {
    this.#streams += 1;
    if (this.#streams === 1) this.#arm();
    return {
      [Symbol.dispose]: () => {
        this.#streams -= 1;
        if (this.#streams === 0) this.#timer?.[Symbol.dispose]();
      },
    };
  }

  /** Resolves at the next tick, at the end, or with the signal. */
  async nextTick(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    this.#waiting.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    await promise;
    signal.removeEventListener('abort', wake);
    this.#waiting.delete(wake);
  }

  /** Wakes those who wait; the next reading is a new one. */
  tick(): void {
    this.#isDue = true;
    for (const wake of this.#waiting) wake();
  }

  #arm(): void {
    this.#timer = this.#needs.clock.after(PERIOD_MS, () => {
      this.#arm();
      this.tick();
    });
  }
}

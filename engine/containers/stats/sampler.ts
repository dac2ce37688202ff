import type { Engine } from '../../engine.ts';
import type { Cgroups } from '../../host/cgroups/cgroups.ts';
import { readSample, type Sample } from './sample.ts';

type Needs = Pick<Engine, 'clock' | 'containers'>;

/** A receiver of each reading. */
export type Follower = Readonly<{
  /** False: it is too slow, and misses this reading. */
  isReady: () => boolean;
  take: (sample: Sample) => void;
  /** The container is removed, or cannot be read. */
  end: (error?: unknown) => void;
}>;

const SAMPLE_INTERVAL_MS = 1000;

/** The readings of one watched container: one a second, unless all followers are too slow. */
export class Sampler {
  readonly #needs: Needs;
  readonly #id: string;
  readonly #cgroups: Cgroups;
  readonly #followers = new Set<Follower>();
  #latest: Sample | undefined;
  #isDue = true;
  #timer: Disposable | undefined;

  constructor(needs: Needs, id: string, cgroups: Cgroups) {
    this.#needs = needs;
    this.#id = id;
    this.#cgroups = cgroups;
  }

  /** A reading of this moment; undefined when the container is removed. */
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

  /** Gives the follower the latest reading, and each one from then on, until the result is disposed of. */
  follow(follower: Follower): Disposable {
    this.#followers.add(follower);
    if (this.#followers.size === 1) this.#arm();
    this.#serve(follower);
    return {
      [Symbol.dispose]: () => {
        this.#followers.delete(follower);
        if (this.#followers.size === 0) this.#timer?.[Symbol.dispose]();
      },
    };
  }

  /** The container is removed. */
  end(): void {
    for (const follower of this.#followers) follower.end();
  }

  #arm(): void {
    this.#isDue = true;
    this.#timer = this.#needs.clock.after(SAMPLE_INTERVAL_MS, () => {
      this.#arm();
      for (const follower of this.#followers) this.#serve(follower);
    });
  }

  /** The first ready follower triggers a reading, which all others share. */
  #serve(follower: Follower): void {
    if (!follower.isReady()) return;
    try {
      const sample = this.#isDue ? this.read() : this.#latest;
      if (sample === undefined) follower.end();
      else follower.take(sample);
    } catch (error) {
      follower.end(error);
    }
  }
}

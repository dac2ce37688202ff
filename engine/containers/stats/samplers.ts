import type { Engine } from '../../engine.ts';
import { detectCgroups } from '../../host/cgroups/cgroups.ts';
import { sleep } from '../../lib/clock.ts';
import type { Sample } from './sample.ts';
import { Sampler, type Follower } from './sampler.ts';

type Needs = Pick<Engine, 'clock' | 'containers'>;

/** Between the two readings of one sample: the machine's CPU time has steps of 10 ms. */
const APART_MS = 400;

/** The readings of watched containers: each is read once a second, for any number of watchers. */
export class Samplers {
  readonly #needs: Needs;
  readonly #byId = new Map<string, { sampler: Sampler; users: number }>();

  constructor(needs: Needs) {
    this.#needs = needs;
  }

  /** Gives the follower a reading at once, and then one a second, until the result is disposed of. */
  follow(id: string, follower: Follower): Disposable {
    using parts = new DisposableStack();
    parts.use(parts.use(this.#join(id)).sampler.follow(follower));
    return parts.move();
  }

  /** A reading at once; undefined for a removed container. */
  one(id: string): Sample | undefined {
    using joined = this.#join(id);
    return joined.sampler.read();
  }

  /** Two readings with some time between them; undefined when the signal or the container's removal comes first. */
  async two(id: string, signal: AbortSignal): Promise<readonly [Sample, Sample] | undefined> {
    using joined = this.#join(id);
    const { sampler } = joined;
    const { clock } = this.#needs;
    // A recent reading, of a stream or of another request, serves as the first.
    const last = sampler.since(clock.now().subtract({ milliseconds: 1000 }));
    const first = last?.usage === undefined ? sampler.read() : last;
    if (first === undefined) return undefined;
    const ready = first.at.add({ milliseconds: APART_MS });
    const left = (): number => Math.ceil(clock.now().until(ready).total('milliseconds'));
    while (left() > 0 && !signal.aborted) await sleep(clock, left(), signal); // a timer may be early
    if (signal.aborted) return undefined;
    const second = sampler.since(ready) ?? sampler.read();
    return second === undefined ? undefined : [first, second];
  }

  /** The container is removed: its streams end. */
  forget(id: string): void {
    this.#byId.get(id)?.sampler.end();
  }

  #join(id: string): { sampler: Sampler } & Disposable {
    const known = this.#byId.get(id) ?? { sampler: new Sampler(this.#needs, id, detectCgroups()), users: 0 };
    known.users += 1;
    this.#byId.set(id, known);
    return {
      sampler: known.sampler,
      [Symbol.dispose]: () => {
        known.users -= 1;
        if (known.users === 0) this.#byId.delete(id);
      },
    };
  }
}

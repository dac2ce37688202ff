import type { Clock } from '../lib/clock.ts';
import { AwaitedMap } from './awaited-map.ts';
import type { Solve } from './solve.ts';
import { GrpcError, StatusCode } from './wire/status.ts';

/** A client may ask for a build in the moment in which it begins it. */
const MAX_WAIT_MS = 5000;
/** A client that was slow may still read the progress of a build that is over. */
const KEPT_MS = 30_000;
const MAX_SOLVES = 256;
/** Clients write 25 letters. */
const MAX_REF_LENGTH = 256;

/** The builds of all clients, by the refs that these have chosen. */
export class Solves {
  readonly #solves = new AwaitedMap<Solve>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Until the result is disposed. Throws for a ref that is taken, and beyond the limit. */
  add(ref: string, solve: Solve): Disposable {
    if (ref === '') throw new GrpcError(StatusCode.INVALID_ARGUMENT, 'the build has no ref');
    if (ref.length > MAX_REF_LENGTH)
      throw new GrpcError(StatusCode.INVALID_ARGUMENT, 'the ref of the build is too long');
    if (this.#solves.has(ref)) throw new GrpcError(StatusCode.ALREADY_EXISTS, `the build ${ref} has begun`);
    if (this.#solves.size >= MAX_SOLVES) throw new GrpcError(StatusCode.RESOURCE_EXHAUSTED, 'too many builds');
    this.#solves.set(ref, solve);
    return {
      [Symbol.dispose]: () => {
        solve.end(this.#clock.now());
        this.#clock.after(KEPT_MS, () => this.#solves.delete(ref));
      },
    };
  }

  async find(ref: string, signal: AbortSignal): Promise<Solve> {
    const solve = await this.#solves.find(ref, MAX_WAIT_MS, signal);
    if (solve === undefined) throw new GrpcError(StatusCode.NOT_FOUND, `no such build: ${JSON.stringify(ref)}`);
    return solve;
  }
}

/** Callers that are remembered at least before idle ones are forgotten. */
const MIN_SWEEP_SIZE = 1000;

/** A caller for which this process has a request under way or a call. */
export type CallerHere = {
  readonly key: string;
  readonly redisKey: string;
  /** Requests that were admitted here and have not ended. */
  underWay: number;
  /** Calls of the script without an answer yet. */
  calls: number;
  /** The server's number of requests under way may differ: a call got no answer, or it is to be renewed. */
  uncertain: boolean;
  /** A renewal is sent when no call is under way. */
  renewalDue: boolean;
  /** Continues the decisions that wait until no call is under way. */
  waiting: (() => void)[];
};

/**
 * The callers for which this process has a request under way or a call, and others that had one. A caller comes back soon
 * mostly; idle ones are forgotten when there are twice as many callers as after the last time.
 */
export class KnownCallers {
  readonly #prefix: string;
  readonly #byKey = new Map<string, CallerHere>();
  #sweepSize = MIN_SWEEP_SIZE;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  find(key: string): CallerHere {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const redisKey = this.redisKey(key);
    const caller = { key, redisKey, underWay: 0, calls: 0, uncertain: false, renewalDue: false, waiting: [] };
    if (this.#byKey.size >= this.#sweepSize) this.#forgetIdle();
    this.#byKey.set(key, caller);
    return caller;
  }

  /** The braces make the caller's name alone decide where the key lives. */
  redisKey(key: string): string {
    return `${this.#prefix}{${key}}`;
  }

  /** Those whose leases have to be renewed, or set right. */
  toRenew(): CallerHere[] {
    return Array.from(this.#byKey.values().filter(({ underWay, uncertain }) => underWay > 0 || uncertain));
  }

  #forgetIdle(): void {
    for (const [key, { underWay, calls, uncertain }] of this.#byKey) {
      if (underWay === 0 && calls === 0 && !uncertain) this.#byKey.delete(key);
    }
    this.#sweepSize = Math.max(MIN_SWEEP_SIZE, 2 * this.#byKey.size);
  }
}

/** Recent requests of a caller. */
export type TopCaller = { key: string; admitted: number; refused: number };

const MINUTE_MS = 60_000;
const MINUTES = 60;
/** Callers that are counted at once, and how many are kept of a minute that is over. */
const MAX_COUNTED = 10_000;
const MAX_STORED = 100;

/**
 * The callers with the most requests in an hour, in each process. Of a minute that is over only the first hundred are
 * kept, and when a minute has too many callers the least busy ones are dropped: a really busy one is never lost.
 */
export class TopCallers implements Disposable {
  readonly #minutes: TopCaller[][] = [];
  readonly #timer = setInterval(() => this.endMinute(), MINUTE_MS).unref();
  #now = new Map<string, TopCaller>();

  note(key: string, isAdmitted: boolean): void {
    let caller = this.#now.get(key);
    if (caller === undefined) {
      if (this.#now.size >= MAX_COUNTED) this.#forgetSmall();
      caller = { key, admitted: 0, refused: 0 };
      this.#now.set(key, caller);
    }
    if (isAdmitted) caller.admitted += 1;
    else caller.refused += 1;
  }

  /** The callers with the most requests, the busiest first. */
  list(): TopCaller[] {
    return topOf([...this.#minutes.flat(), ...this.#now.values()]);
  }

  endMinute(): void {
    this.#minutes.push(topOf([...this.#now.values()]));
    if (this.#minutes.length > MINUTES) this.#minutes.shift();
    this.#now = new Map();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #forgetSmall(): void {
    for (let least = 1; this.#now.size > MAX_COUNTED / 2; least *= 2) {
      for (const [key, { admitted, refused }] of this.#now) if (admitted + refused <= least) this.#now.delete(key);
    }
  }
}

/** The first hundred, with what several lists say about the same caller added up. */
export function topOf(callers: readonly TopCaller[]): TopCaller[] {
  const byKey = new Map<string, TopCaller>();
  for (const { key, admitted, refused } of callers) {
    const sum = byKey.get(key) ?? { key, admitted: 0, refused: 0 };
    byKey.set(key, { key, admitted: sum.admitted + admitted, refused: sum.refused + refused });
  }
  const all = [...byKey.values()].toSorted((a, b) => b.admitted + b.refused - (a.admitted + a.refused));
  return all.slice(0, MAX_STORED);
}

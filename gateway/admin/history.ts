import type { Counts } from '../metrics.ts';

/** Counts of a minute. */
export type Minute = Readonly<{
  /** When it began, in epoch seconds. */
  at: number;
  admitted: number;
  /** By limits, bans and a store that is away. */
  refused: number;
  shadowed: number;
  upstreamFailures: number;
}>;

type Totals = Omit<Minute, 'at'>;

const MINUTE_MS = 60_000;
const MINUTES = 60;

/** The last hour, minute by minute: the differences of what is counted since the start. */
export class History implements Disposable {
  readonly #counts: () => Promise<Counts>;
  readonly #minutes: Minute[] = [];
  readonly #timer = setInterval(() => void this.endMinute(), MINUTE_MS).unref();
  #at = nowSeconds();
  #before: Totals = { admitted: 0, refused: 0, shadowed: 0, upstreamFailures: 0 };

  constructor(counts: () => Promise<Counts>) {
    this.#counts = counts;
  }

  /** The oldest minute first; the last one is not over. */
  async minutes(): Promise<Minute[]> {
    return [...this.#minutes, difference(this.#before, totalsOf(await this.#counts()), this.#at)];
  }

  async endMinute(): Promise<void> {
    let totals: Totals;
    try {
      totals = totalsOf(await this.#counts());
    } catch {
      return; // a worker does not answer: the minute goes on
    }
    this.#minutes.push(difference(this.#before, totals, this.#at));
    if (this.#minutes.length >= MINUTES) this.#minutes.shift();
    this.#before = totals;
    this.#at = nowSeconds();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

function totalsOf({ limiter, upstreamFailures }: Counts): Totals {
  return {
    admitted: limiter.admitted,
    refused: sum(limiter.refused) + limiter.banned + limiter.unavailable,
    shadowed: sum(limiter.shadowed),
    upstreamFailures: sum(upstreamFailures),
  };
}

/** A worker that was replaced counts from nothing. */
function difference(before: Totals, now: Totals, at: number): Minute {
  const since = (name: keyof Totals): number => Math.max(0, now[name] - before[name]);
  return {
    at,
    admitted: since('admitted'),
    refused: since('refused'),
    shadowed: since('shadowed'),
    upstreamFailures: since('upstreamFailures'),
  };
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

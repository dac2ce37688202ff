/** How often to check whether this process stands still. */
const TICK_MS = 50;
/** Between two checks at most this counts. */
const MAX_MS = 2 * TICK_MS;

/**
 * Milliseconds in which this process runs. Time in which it was stopped, starved, or busy with one long piece of work
 * does not tell how long the server behind it has worked: an answer may have been waiting.
 *
 * It checks only between `start` and `stop`; at other times all time counts. Setting the clock does not change it.
 */
export class WorkingTime {
  readonly #real: () => number;
  #countedMs = 0;
  #lookedMs: number;
  #timer: NodeJS.Timeout | undefined;

  /** `real`: milliseconds that never go back. */
  constructor(real: () => number = () => performance.now()) {
    this.#real = real;
    this.#lookedMs = real();
  }

  now(): number {
    const passed = this.#real() - this.#lookedMs;
    return this.#countedMs + (this.#timer === undefined ? passed : Math.min(passed, MAX_MS));
  }

  start(): void {
    if (this.#timer !== undefined) return;
    this.look();
    this.#timer = setInterval(() => this.look(), TICK_MS).unref();
  }

  stop(): void {
    this.look();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** This process goes on. */
  look(): void {
    this.#countedMs = this.now();
    this.#lookedMs = this.#real();
  }
}

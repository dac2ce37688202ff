import type { Verdict } from '../types.ts';
import type { Operation } from './operation.ts';

const NO_VERDICT: Verdict = { refusedBy: -1, until: 0, shadowed: 0, used: 0, reset: 0, nowMs: 0, ticket: 0 };

/**
 * Delivers the answers to requests, in parts: as many at once as fit a call.
 *
 * A request that is answered may be followed by another at once. If all were answered together, all would ask together,
 * and server and process would wait for each other in turn; so what one part asks is sent before the next part is
 * answered. Parts have a least size: a call for every two requests would cost more than the waiting.
 */
export class Answers {
  readonly #calls: number;
  readonly #fewest: number;
  readonly #sendAsked: () => void;
  /** Operations that were asked for and not yet answered. */
  #waiting = 0;
  /** Operations whose answer has come. */
  #answered: Operation[] = [];
  #telling = false;
  /** Asked since the last part was answered. */
  #asked = 0;
  #askedAtOnce = false;

  /** Spreads waiting operations over `calls`, with at least `fewest` each. `sendAsked` sends what was asked in this turn. */
  constructor(calls: number, fewest: number, sendAsked: () => void) {
    this.#calls = calls;
    this.#fewest = fewest;
    this.#sendAsked = sendAsked;
  }

  /** All requests of the last part have asked again at once: this process does nothing but decide. */
  get askedAtOnce(): boolean {
    return this.#askedAtOnce;
  }

  /** One more operation will be answered. */
  expect(): void {
    this.#asked += 1;
    this.#waiting += 1;
  }

  add(operation: Operation): void {
    this.#answered.push(operation);
  }

  /** Rejects an operation that gets no answer. */
  reject({ reject }: Operation, error: unknown): void {
    if (reject === undefined) return;
    this.#waiting -= 1;
    reject(error);
  }

  tell(): void {
    if (this.#telling || this.#answered.length === 0) return;
    this.#telling = true;
    const told = this.#answered.splice(0, Math.max(this.#fewest, Math.ceil(this.#waiting / this.#calls)));
    this.#waiting -= told.length;
    this.#asked = 0;
    for (const { resolve, reject, verdict, error } of told) {
      if (error === undefined) resolve?.(verdict ?? NO_VERDICT);
      else reject?.(error);
    }
    // After everything that the answers set off, however many promises that takes.
    queueMicrotask(() => process.nextTick(() => this.#toldLast(told.length)));
  }

  #toldLast(count: number): void {
    this.#askedAtOnce = this.#asked >= count;
    this.#sendAsked();
    setImmediate(() => {
      this.#telling = false;
      this.tell();
    });
  }
}

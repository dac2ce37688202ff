import type { Verdict } from '../types.ts';
import type { Operation } from './operation.ts';

const NO_VERDICT: Verdict = { refusedBy: -1, until: 0, shadowed: 0, used: 0, reset: 0, nowMs: 0, ticket: 0 };

/**
 * Tells requests their answers, so many in a turn as there are to a call.
 *
 * Who is told may ask again at once. All that are told together would ask together, and then server and process wait
 * for each other in turn; so what these ask is on its way before the next are told. Fewer than are worth a call are not
 * told apart: a call for each two would cost more than the waiting.
 */
export class Answers {
  readonly #calls: number;
  readonly #fewest: number;
  readonly #sendAsked: () => void;
  /** Operations that were asked for and not told. */
  #waiting = 0;
  /** Those whose answer has come. */
  #answered: Operation[] = [];
  #telling = false;
  /** Asked since the last were told. */
  #asked = 0;
  #askedAtOnce = false;

  /** Over so many `calls` what waits is spread, with at least `fewest` each. `sendAsked` sends what was asked in this turn. */
  constructor(calls: number, fewest: number, sendAsked: () => void) {
    this.#calls = calls;
    this.#fewest = fewest;
    this.#sendAsked = sendAsked;
  }

  /** All that were told last have asked again at once: there is nothing else to do here than to decide. */
  get askedAtOnce(): boolean {
    return this.#askedAtOnce;
  }

  /** Somebody waits for one more. */
  expect(): void {
    this.#asked += 1;
    this.#waiting += 1;
  }

  add(operation: Operation): void {
    this.#answered.push(operation);
  }

  /** There will be none for this one. */
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
    // After all that follows from being told, however many promises that takes.
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

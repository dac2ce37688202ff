/** The server has not answered in time. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/** The time limit is divided into this number of parts. */
const PARTS = 8;

/** `at`: its place in the list, -1 when it is over. */
type Wait = { at: number; left: number; giveUp: () => void };

/**
 * A time limit for every wait. It counts the time in which this process could have read an answer: a standstill counts
 * as one part, and what has come in the meantime is read before the next one.
 */
export class Patience implements Disposable {
  readonly #timeoutMs: number;
  /** The last one takes the place of one that is over: a `Set` makes a new table every few entries, which outlive the young objects. */
  readonly #waits: Wait[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Rejects with `NoAnswer` when there is none in time. */
  within<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => reject(new NoAnswer(`redis has not answered in ${this.#timeoutMs} ms`));
      const wait = { at: this.#waits.length, left: PARTS, giveUp };
      this.#waits.push(wait);
      // After a turn's timers Node reads what has come, and only then `setImmediate` runs.
      this.#timer ??= setInterval(() => setImmediate(() => this.#endPart()), this.#timeoutMs / PARTS);
      answer.then(
        (value) => {
          this.#end(wait);
          return resolve(value);
        },
        (error: unknown) => {
          this.#end(wait);
          return reject(error);
        },
      );
    });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #endPart(): void {
    if (this.#waits.length === 0) return this[Symbol.dispose]();
    for (const wait of [...this.#waits]) {
      // The part in which it began is not counted.
      wait.left -= 1;
      if (wait.left >= 0) continue;
      this.#end(wait);
      wait.giveUp();
    }
  }

  #end(wait: Wait): void {
    const last = this.#waits.at(-1);
    if (wait.at < 0 || last === undefined) return;
    this.#waits[wait.at] = last;
    last.at = wait.at;
    wait.at = -1;
    this.#waits.pop();
  }
}

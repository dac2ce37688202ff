import { decodeMulti } from '@msgpack/msgpack';

import type { Clock } from '../../../lib/clock.ts';

/** A batch that takes longer to be stored is sent again. */
const TIMEOUT_MS = 60_000;
const MAX_ANSWER_LENGTH = 64 * 1024;

/** The answers of a receiver: the name of a chunk that it has stored. One chunk at a time is under way. */
export class Acknowledgements {
  readonly #clock: Clock;
  #bytes: Buffer = Buffer.alloc(0);
  #waiting: PromiseWithResolvers<void> | undefined;
  #chunk = '';
  #last = '';

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when this chunk is stored. */
  async of(chunk: string): Promise<void> {
    this.#chunk = chunk;
    if (this.#last === chunk) return;
    this.#waiting = Promise.withResolvers();
    const late = (): void => this.fail(new Error('the receiver acknowledges nothing'));
    using _deadline = this.#clock.after(TIMEOUT_MS, late);
    await this.#waiting.promise;
  }

  take(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    try {
      for (const answer of decodeMulti(this.#bytes)) this.#acknowledge(answer);
      this.#bytes = Buffer.alloc(0);
    } catch (error) {
      // The rest of an answer has not arrived yet.
      if (!(error instanceof RangeError) || this.#bytes.length > MAX_ANSWER_LENGTH) this.fail(error);
    }
  }

  /** No answer will come. */
  fail(reason: unknown): void {
    this.#waiting?.reject(reason);
    this.#waiting = undefined;
  }

  #acknowledge(answer: unknown): void {
    if (typeof answer !== 'object' || answer === null || !('ack' in answer)) return;
    this.#last = String(answer.ack);
    if (this.#last === this.#chunk) this.#waiting?.resolve();
  }
}

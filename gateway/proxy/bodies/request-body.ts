import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

import type { HeldBody } from './held-body.ts';

/** Told when the upstream waits for the client's next bytes, and when they have come. */
export type OnWait = (waits: boolean) => void;

/**
 * A request's body on its way to the upstream: first the part that was held, then what still arrives.
 *
 * undici destroys the body when the upstream answers early or fails. The client's connection must
 * outlive that: the rest of the body is then read and discarded, so that the client receives the answer.
 */
export class RequestBody extends Readable {
  readonly #req: IncomingMessage;
  readonly #held: HeldBody;
  readonly #onWait: OnWait;
  #isLive = false;
  readonly #onData = (chunk: Buffer): void => {
    this.#onWait(false);
    if (this.push(chunk)) this.#noteWait();
    else this.#req.pause();
  };
  readonly #onEnd = (): void => {
    this.#onWait(false);
    this.push(null);
  };

  constructor(req: IncomingMessage, held: HeldBody, onWait: OnWait) {
    super();
    this.#req = req;
    this.#held = held;
    this.#onWait = onWait;
    if (held.isInMemory) {
      this.push(held.buffer);
      this.#goLive();
    }
  }

  override _read(): void {
    if (!this.#isLive) return void this.#pushHeld();
    this.#req.resume();
    this.#noteWaitSoon();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#req.off('data', this.#onData).off('end', this.#onEnd);
    this.#req.resume();
    done(error);
  }

  /** The piece that is being passed on is still counted. */
  readonly #noteWaitSoon = (): void => process.nextTick(() => this.#noteWait());

  #noteWait(): void {
    if (this.readableLength === 0 && this.readableFlowing === true && !this.#req.complete) this.#onWait(true);
  }

  async #pushHeld(): Promise<void> {
    try {
      const piece = await this.#held.next();
      if (piece !== undefined) this.push(piece);
      else this.#goLive();
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #goLive(): void {
    this.#isLive = true;
    if (this.#held.isWhole) {
      this.push(null);
      return;
    }
    this.on('resume', this.#noteWaitSoon);
    this.#req.on('data', this.#onData).once('end', this.#onEnd).resume();
  }
}

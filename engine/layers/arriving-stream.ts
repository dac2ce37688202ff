import { EngineError } from '../lib/errors.ts';

/** Chunks that arrive by messages, read as a stream; says how many were read, so that the sender can wait. */
export class ArrivingStream implements AsyncIterable<Buffer> {
  readonly #onConsumed: (chunks: number) => void;
  readonly #chunks: Buffer[] = [];
  #ended = false;
  #failure: string | undefined;
  #wake: (() => void) | undefined;

  constructor(onConsumed: (chunks: number) => void) {
    this.#onConsumed = onConsumed;
  }

  push(chunk: Uint8Array): void {
    this.#chunks.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    this.#wake?.();
  }

  /** Nothing follows; with a `failure` the stream is not complete, and its reader hears of it. */
  end(failure: string | undefined): void {
    this.#ended = true;
    this.#failure = failure;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (;;) {
      if (this.#failure !== undefined) throw new EngineError('failed', this.#failure);
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        yield chunk;
        this.#onConsumed(1);
        continue;
      }
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

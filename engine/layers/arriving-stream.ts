import { EngineError } from '../lib/errors.ts';

/**
 * Chunks that arrive by messages, read as a stream. What was read is given back, so that the sender can wait, and fill it
 * again: a chunk is the reader's until it asks for the next one.
 */
export class ArrivingStream implements AsyncIterable<Buffer> {
  readonly #giveBack: (chunk: Buffer<ArrayBuffer>) => void;
  readonly #chunks: Buffer<ArrayBuffer>[] = [];
  #ended = false;
  #failure: string | undefined;
  #wake: (() => void) | undefined;

  constructor(giveBack: (chunk: Buffer<ArrayBuffer>) => void) {
    this.#giveBack = giveBack;
  }

  push(chunk: Uint8Array<ArrayBuffer>): void {
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
        this.#giveBack(chunk);
        continue;
      }
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

import { EngineError } from '../../lib/errors.ts';

/**
 * Chunks that arrive by messages, read as a stream. Consumed chunks go back to the sender, which waits for them and
 * reuses them: a chunk is valid until the reader asks for the next one.
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

  /** The end of the stream; with a `failure` it is incomplete, and its reader throws. */
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

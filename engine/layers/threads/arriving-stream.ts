import { append } from '../../lib/append.ts';
import { EngineError } from '../../lib/errors.ts';

/** Consumed bytes are told to the sender, which waits for them, so many at once. */
const TOLD_BYTES = 128 * 1024;

/**
 * Chunks that arrive by messages, read as a stream. A chunk is valid until the reader asks for the next one: then its
 * memory is freed.
 */
export class ArrivingStream implements AsyncIterable<Buffer> {
  readonly #tell: (consumedBytes: number) => void;
  readonly #chunks: Uint8Array<ArrayBuffer>[] = [];
  #consumedBytes = 0;
  #ended = false;
  #failure: string | undefined;
  #wake: (() => void) | undefined;

  constructor(tell: (consumedBytes: number) => void) {
    this.#tell = tell;
  }

  push(chunks: readonly Uint8Array<ArrayBuffer>[]): void {
    append(this.#chunks, chunks);
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
        yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        this.#free(chunk);
        continue;
      }
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #free({ buffer, byteLength }: Uint8Array<ArrayBuffer>): void {
    buffer.transfer(0); // at once: the collector would come late
    this.#consumedBytes += byteLength;
    if (this.#consumedBytes < TOLD_BYTES && this.#chunks.length > 0) return;
    this.#tell(this.#consumedBytes);
    this.#consumedBytes = 0;
  }
}

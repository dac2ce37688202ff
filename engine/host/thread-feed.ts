import { bytesPassed } from './memory.ts';

/** `ahead`: the number of chunks on their way to the thread at which the sender waits, and with it the client. */
type Chunks = Readonly<{ bytes: number; ahead: number }>;

type Piece = { chunk: Uint8Array<ArrayBuffer> } | { end: { failure?: string } };

/** Sends a stream to a thread in chunks of a good size, and waits when the thread is behind. */
export class ThreadFeed {
  readonly #send: (piece: Piece, memory: readonly ArrayBuffer[]) => void;
  readonly #chunks: Chunks;
  readonly #spare: ArrayBuffer[] = [];
  #ahead = 0;
  #wake: (() => void) | undefined;

  constructor(chunks: Chunks, send: (piece: Piece, memory: readonly ArrayBuffer[]) => void) {
    this.#chunks = chunks;
    this.#send = send;
  }

  /** The thread has consumed a chunk. */
  giveBack(memory: ArrayBuffer): void {
    this.#ahead -= 1;
    this.#spare.push(memory);
    this.#wake?.();
  }

  /** Returns at the end of the stream, or when `settled` is: failed work takes no more bytes. */
  async run(stream: AsyncIterable<Uint8Array>, work: Promise<unknown>): Promise<void> {
    const state = { isOver: false };
    const over = (): void => void (state.isOver = true);
    const settled = work.then(over, over);
    try {
      let chunk = this.#empty();
      let bytes = 0;
      for await (const piece of stream) {
        for (let at = 0; at < piece.length;) {
          const part = piece.subarray(at, at + this.#chunks.bytes - bytes);
          chunk.set(part, bytes);
          bytes += part.length;
          at += part.length;
          if (bytes < this.#chunks.bytes) continue;
          await this.#pass(chunk, settled);
          if (state.isOver) return;
          chunk = this.#empty();
          bytes = 0;
        }
        if (state.isOver) return;
        bytesPassed(piece.length);
      }
      if (bytes > 0) await this.#pass(chunk.subarray(0, bytes), settled);
      this.#send({ end: {} }, []);
    } catch (error) {
      const failure = `the upload broke off: ${error instanceof Error ? error.message : 'unknown'}`;
      this.#send({ end: { failure } }, []);
    }
  }

  async #pass(chunk: Uint8Array<ArrayBuffer>, settled: Promise<void>): Promise<void> {
    this.#ahead += 1;
    this.#send({ chunk }, [chunk.buffer]);
    while (this.#ahead >= this.#chunks.ahead) {
      const room = new Promise<void>((resolve) => (this.#wake = resolve));
      if ((await Promise.race([room.then(() => 'room'), settled.then(() => 'over')])) === 'over') return;
    }
  }

  #empty(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#spare.pop() ?? new ArrayBuffer(this.#chunks.bytes));
  }
}

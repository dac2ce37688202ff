import { setImmediate } from 'node:timers/promises';

const CHUNK_BYTES = 256 * 1024;
/** This many chunks are on their way at most; then the sender waits for the client. */
const AHEAD = 4;
const FIRST_BYTES = 16 * 1024;

/** Chunks for another thread, which returns their memory after use. */
export class OutgoingChunks {
  readonly #send: (chunk: Uint8Array<ArrayBuffer>) => void;
  readonly #spare: ArrayBuffer[] = [];
  #ahead = 0;
  #isFirst = true;
  #isStopped = false;
  #wake: (() => void) | undefined;

  constructor(send: (chunk: Uint8Array<ArrayBuffer>) => void) {
    this.#send = send;
  }

  /** Memory for the next chunk. A small archive takes little of it. */
  fresh(): Buffer<ArrayBuffer> {
    const size = this.#isFirst ? FIRST_BYTES : CHUNK_BYTES;
    this.#isFirst = false;
    return Buffer.from(this.#spare.pop() ?? new ArrayBuffer(size));
  }

  /** Sends a chunk, and resolves when the next one may follow. Throws when the archive is no longer wanted. */
  async send(chunk: Buffer): Promise<void> {
    this.#throwIfStopped();
    this.#ahead += 1;
    this.#send(chunk as Buffer<ArrayBuffer>);
    await setImmediate(); // yields to other work of this thread
    while (this.#ahead >= AHEAD && !this.#isStopped) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    this.#throwIfStopped();
  }

  /** A chunk was taken; its memory comes back. */
  giveBack(memory: ArrayBuffer): void {
    this.#ahead -= 1;
    if (memory.byteLength === CHUNK_BYTES) this.#spare.push(memory);
    this.#wake?.();
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake?.();
  }

  #throwIfStopped(): void {
    if (this.#isStopped) throw new Error('the archive is no longer wanted');
  }
}

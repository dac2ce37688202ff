import { setImmediate } from 'node:timers/promises';

const [SMALL_BYTES, LARGE_BYTES] = [16 * 1024, 256 * 1024];
/** So many small chunks are taken before large ones: the kernel alone takes 200 KB for a client that does not read. */
const TRIAL_CHUNKS = 32;
/** Large chunks of all streams of this thread: clients that stop reading keep theirs. */
const MAX_LARGE = 16;
/** This many chunks are on their way at most; then the sender waits for the client. */
const AHEAD = 4;

let large = 0;

/** Chunks for another thread, which returns their memory after use. */
export class OutgoingChunks implements Disposable {
  readonly #send: (chunk: Uint8Array<ArrayBuffer>) => void;
  readonly #spare: ArrayBuffer[] = [];
  #ahead = 0;
  #taken = 0;
  #large = 0;
  #isStopped = false;
  #wake: (() => void) | undefined;

  constructor(send: (chunk: Uint8Array<ArrayBuffer>) => void) {
    this.#send = send;
  }

  /** Memory for the next chunk. A small archive, and a client that does not read, takes little of it. */
  fresh(): Buffer<ArrayBuffer> {
    const spare = this.#spare.pop();
    const mayGrow = this.#taken >= TRIAL_CHUNKS && large < MAX_LARGE;
    if (spare !== undefined && (spare.byteLength === LARGE_BYTES || !mayGrow)) return Buffer.from(spare);
    if (!mayGrow) return Buffer.from(new ArrayBuffer(SMALL_BYTES));
    large += 1;
    this.#large += 1;
    return Buffer.from(new ArrayBuffer(LARGE_BYTES));
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
    this.#taken += 1;
    this.#spare.push(memory);
    this.#wake?.();
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake?.();
  }

  /** The stream is over: others may have its large chunks. */
  [Symbol.dispose](): void {
    large -= this.#large;
  }

  #throwIfStopped(): void {
    if (this.#isStopped) throw new Error('the archive is no longer wanted');
  }
}

import type { OnReadOpts, Socket } from 'node:net';

const BUFFER_BYTES = 128 * 1024;

/** Gets a piece; it is valid until `taken` is called. */
export type Take = (piece: Buffer, taken: () => void) => void;

/**
 * Two buffers for reading a socket, each reused when its piece was taken.
 *
 * A new buffer per piece makes the garbage collector the slowest part of a fast stream: half of the time for 100 MB.
 */
export class ReusedBuffers {
  readonly #buffers: [Buffer, Buffer] = [Buffer.allocUnsafeSlow(BUFFER_BYTES), Buffer.allocUnsafeSlow(BUFFER_BYTES)];
  #next = 0;
  #untaken = 0;
  #socket: Socket | undefined;
  #take: Take | undefined;

  /** The `onread` option of the socket. Until `flow` the pieces are copied, and the socket behaves like any other. */
  bind(socket: () => Socket): OnReadOpts {
    return {
      buffer: () => this.#buffers[(this.#next ^= 1) as 0 | 1],
      callback: (bytes, filled) => this.#read(socket(), Buffer.from(filled.buffer, filled.byteOffset, bytes)),
    };
  }

  /** From here on pieces go only to `take`; the socket's `end` still follows the last one. */
  flow(socket: Socket, take: Take): void {
    this.#socket = socket;
    // One piece at a time; they are few, because nothing is read ahead of the stream's own limit.
    for (let early: Buffer | null; (early = socket.read()) !== null;) take(early, () => undefined);
    this.#take = take;
    socket.resume();
  }

  /** Whether to read on. */
  #read(socket: Socket, piece: Buffer): boolean {
    if (this.#take === undefined) return socket.push(Buffer.from(piece));
    this.#untaken += 1;
    this.#take(piece, () => this.#taken());
    return this.#untaken < this.#buffers.length;
  }

  #taken(): void {
    this.#untaken -= 1;
    if (this.#untaken === this.#buffers.length - 1 && this.#socket?.destroyed === false) this.#socket.resume();
  }
}

const FIRST_BYTES = 4096;

/** Bytes that come in pieces, kept in one buffer: each of a million pieces of one byte would cost a hundred. */
export class GrowingBuffer {
  #buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  push(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#buffer.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.#buffer.length, length, FIRST_BYTES));
      grown.set(this.bytes);
      this.#buffer = grown;
    }
    this.#buffer.set(piece, this.#length);
    this.#length = length;
  }
}

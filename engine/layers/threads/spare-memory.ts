/**
 * Memory of one size that this thread uses again. New memory for each layer would outlive the young generation, and stay as
 * garbage until the whole heap is collected.
 */
export class SpareMemory {
  readonly #bytes: number;
  #spare: Buffer | undefined;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  /** Its content is arbitrary; after the disposal it belongs to the next caller. */
  take(): Disposable & { memory: Buffer } {
    const memory = this.#spare ?? Buffer.allocUnsafeSlow(this.#bytes);
    this.#spare = undefined;
    return { memory, [Symbol.dispose]: () => void (this.#spare = memory) };
  }
}

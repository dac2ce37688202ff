import { open } from 'node:fs/promises';

const READ_BYTES = 256 * 1024;

type Whole = { digest: string; size: number };

/** A file that is read while it is still being written. It may be complete from the start. */
export class GrowingFile {
  readonly #path: string;
  readonly #whole = Promise.withResolvers<Whole>();
  #bytes = 0;
  #isWhole = false;
  #failure: { error: unknown } | undefined;
  #wake: (() => void)[] = [];

  constructor(path: string, whole?: Whole) {
    this.#path = path;
    this.#whole.promise.catch(() => undefined); // its readers get the error
    if (whole !== undefined) this.end(whole);
  }

  /** Settles when it is complete. */
  get whole(): Promise<Whole> {
    return this.#whole.promise;
  }

  /** The reason why it will never be complete. */
  get failure(): { error: unknown } | undefined {
    return this.#failure;
  }

  /** The number of bytes written so far. */
  grow(bytes: number): void {
    this.#bytes = Math.max(this.#bytes, bytes);
    this.#tell();
  }

  end(whole: Whole): void {
    this.#isWhole = true;
    this.grow(whole.size);
    this.#whole.resolve(whole);
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#whole.reject(error);
    this.#tell();
  }

  /**
   * The bytes from `start` on, as they come; each piece is valid until the next one is asked for. `onProgress` gets how many
   * of all bytes were taken.
   */
  async *read(start: number, onProgress: (bytes: number) => void): AsyncGenerator<Buffer> {
    await this.#more(start);
    await using file = await open(this.#path, 'r');
    const memory = Buffer.allocUnsafeSlow(READ_BYTES);
    let at = start;
    for (; await this.#more(at); onProgress(at)) {
      const { bytesRead } = await file.read(memory, 0, Math.min(READ_BYTES, this.#bytes - at), at);
      if (bytesRead === 0) throw new Error(`${this.#path} is shorter than it was`);
      at += bytesRead;
      yield memory.subarray(0, bytesRead);
    }
  }

  /** Waits for bytes behind `at`; false at the end. */
  async #more(at: number): Promise<boolean> {
    while (this.#bytes <= at && !this.#isWhole && this.#failure === undefined) {
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.#bytes > at;
  }

  #tell(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }
}

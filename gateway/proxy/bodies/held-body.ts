import { SpoolFile } from './spool-file.ts';

const MAX_MEMORY_BYTES = 64 * 2 ** 20;
const MAX_FILE_BYTES = 2 ** 30;
const MIN_BUFFER_BYTES = 4096;

/** Bytes that wait in this process for a slow client: bodies for their rest, answers for their reader. */
export class HeldBytes {
  #inMemory = 0;
  #inFiles = 0;

  /** Returns false when too much is in memory already. */
  reserve(bytes: number): boolean {
    if (this.#inMemory + bytes > MAX_MEMORY_BYTES) return false;
    this.#inMemory += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#inMemory -= bytes;
  }

  addToFiles(bytes: number): void {
    if (this.#inFiles + bytes > MAX_FILE_BYTES)
      throw new Error('too many bytes of slow clients are in temporary files');
    this.#inFiles += bytes;
  }

  removeFromFiles(bytes: number): void {
    this.#inFiles -= bytes;
  }
}

/**
 * The part of a request's body that has arrived: in memory while there is room for all clients together, else in a file.
 *
 * It is copied into one buffer that grows: a client may send single bytes, and a buffer for each would fill the memory.
 */
export class HeldBody implements Disposable {
  size = 0;
  /** The client has sent all of it. */
  isWhole = false;
  readonly #bytes: HeldBytes;
  #buffer: Buffer = Buffer.alloc(0);
  /** Filled part of the buffer. */
  #length = 0;
  #file: SpoolFile | undefined;
  #spooledBytes = 0;
  #closed = false;

  constructor(bytes: HeldBytes) {
    this.#bytes = bytes;
  }

  /** Returns a promise where the next piece must wait for it. */
  add(piece: Buffer): Promise<void> | undefined {
    this.size += piece.length;
    if (this.#file === undefined && this.#keep(piece)) return undefined;
    return this.#spool(piece);
  }

  /** The content that is in memory; no copy. */
  get buffer(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  get isInMemory(): boolean {
    return this.#file === undefined;
  }

  /** The next piece of a body in a file. Undefined: there is no more. */
  async next(): Promise<Buffer | undefined> {
    return await this.#file?.next();
  }

  /** Frees what it holds. */
  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#release();
    this.#bytes.removeFromFiles(this.#spooledBytes);
    if (this.#file !== undefined) close(this.#file);
  }

  /** Returns false when there is no room for the piece in memory. */
  #keep(piece: Buffer): boolean {
    const needed = this.#length + piece.length;
    if (needed > this.#buffer.length) {
      // Most bodies arrive in one piece, which is not copied.
      const capacity = this.#length === 0 ? needed : Math.max(needed, 2 * this.#buffer.length, MIN_BUFFER_BYTES);
      if (!this.#bytes.reserve(capacity - this.#buffer.length)) return false;
      const larger = this.#length === 0 ? piece : Buffer.allocUnsafeSlow(capacity);
      if (this.#length > 0) this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    if (this.#buffer !== piece) piece.copy(this.#buffer, this.#length);
    this.#length = needed;
    return true;
  }

  async #spool(piece: Buffer): Promise<void> {
    const added = this.#length + piece.length;
    this.#bytes.addToFiles(added);
    this.#spooledBytes += added;
    if (this.#file === undefined) {
      const file = await SpoolFile.open();
      if (this.#closed) return close(file); // the client has left meanwhile
      this.#file = file;
      await file.append(this.buffer);
      this.#release();
    }
    await this.#file.append(piece);
  }

  #release(): void {
    this.#bytes.release(this.#buffer.length);
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
  }
}

function close(file: SpoolFile): void {
  // Its content is not needed any more, so a failure changes nothing.
  file[Symbol.asyncDispose]().catch(() => undefined);
}

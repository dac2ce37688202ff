import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const READ_BYTES = 65_536;

/** A temporary file without a name: a killed gateway leaves none behind. */
export class SpoolFile implements AsyncDisposable {
  size = 0;
  readonly #handle: FileHandle;
  #readAt = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  static async open(): Promise<SpoolFile> {
    const path = join(tmpdir(), `gantry-gateway-${randomUUID()}`);
    const handle = await open(path, 'wx+', 0o600);
    await unlink(path);
    return new SpoolFile(handle);
  }

  async append(piece: Buffer): Promise<void> {
    for (let done = 0; done < piece.length;) {
      const { bytesWritten } = await this.#handle.write(piece, done, piece.length - done, this.size);
      this.size += bytesWritten;
      done += bytesWritten;
    }
  }

  /** The next piece of the content. Undefined: there is no more. */
  async next(): Promise<Buffer | undefined> {
    const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, this.size - this.#readAt));
    if (buffer.length === 0) return undefined;
    const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, this.#readAt);
    this.#readAt += bytesRead;
    return buffer.subarray(0, bytesRead);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';

/** Writes and hashes a new file; synchronous, for worker threads. */
export class FileWriter implements Disposable {
  readonly #fd: number;
  readonly #hash = createHash('sha256');
  #sizeBytes = 0;

  constructor(path: string) {
    this.#fd = openSync(path, 'wx', 0o600);
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  write(chunk: Buffer, position: number): void {
    this.#hash.update(chunk);
    for (let written = 0; written < chunk.length;) {
      written += writeSync(this.#fd, chunk, written, chunk.length - written, position + written);
    }
    this.#sizeBytes += chunk.length;
  }

  digest(): string {
    return `sha256:${this.#hash.digest('hex')}`;
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

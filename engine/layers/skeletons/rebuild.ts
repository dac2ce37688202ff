import { closeSync, readSync } from 'node:fs';

import { openDirectoryInRoot, openFileAt, openRoot, readable, type BytePath } from '../../host/files/openat.ts';
import { partsOf } from './skeleton-file.ts';

/**
 * The archive of a skeleton and the extracted files. `fresh` provides memory for a chunk; all chunks but the last are
 * full. Throws when a file is missing or too short; only the digest tells whether the bytes are right.
 */
export function* rebuild<Memory extends Buffer>(
  skeleton: string,
  folder: string,
  fresh: () => Memory,
): Generator<Memory> {
  using files = new LayerFiles(folder);
  let chunk = fresh();
  let used = 0;
  for (const part of partsOf(skeleton)) {
    if (part.kind === 'file') {
      files.open(part.path);
      continue;
    }
    const total = part.kind === 'run' ? part.length : part.bytes.length;
    for (let done = 0; done < total;) {
      if (used === chunk.length) {
        yield chunk;
        chunk = fresh();
        used = 0;
      }
      const count = Math.min(total - done, chunk.length - used);
      if (part.kind === 'run') files.read(chunk, used, count, part.offset + done);
      else part.bytes.copy(chunk, used, done, done + count);
      used += count;
      done += count;
    }
  }
  if (used > 0) yield chunk.subarray(0, used) as Memory;
}

class LayerFiles implements Disposable {
  readonly #root: number;
  /** The folder of the last file, because archives go folder by folder. */
  #parent: { fd: number; path: BytePath } | undefined;
  #open: { fd: number; path: BytePath } | undefined;

  constructor(folder: string) {
    this.#root = openRoot(folder);
  }

  open(path: BytePath): void {
    this.#close();
    const slash = path.lastIndexOf('/');
    const parent = this.#directory(slash < 0 ? '' : path.slice(0, slash));
    this.#open = { fd: openFileAt(parent, path.slice(slash + 1)), path };
  }

  read(target: Buffer, at: number, count: number, offset: number): void {
    if (this.#open === undefined) throw new Error('a skeleton has a run of no file');
    const { fd, path } = this.#open;
    for (let done = 0; done < count;) {
      const bytes = readSync(fd, target, at + done, count - done, offset + done);
      if (bytes === 0) throw new Error(`a file of a layer is too short: ${readable(path)}`);
      done += bytes;
    }
  }

  [Symbol.dispose](): void {
    this.#close();
    if (this.#parent !== undefined) closeSync(this.#parent.fd);
    closeSync(this.#root);
  }

  #directory(path: BytePath): number {
    if (this.#parent?.path === path) return this.#parent.fd;
    const fd = openDirectoryInRoot(this.#root, path);
    if (this.#parent !== undefined) closeSync(this.#parent.fd);
    this.#parent = { fd, path };
    return fd;
  }

  #close(): void {
    if (this.#open !== undefined) closeSync(this.#open.fd);
    this.#open = undefined;
  }
}

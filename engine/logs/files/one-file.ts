import { closeSync, fstatSync, openSync, read, readSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

import { bytesPassed } from '../../host/garbage.ts';
import { joinApart, type LogLines } from '../log-line.ts';
import { inodeBefore, PACKED, unpack } from './packed.ts';

const CHUNK_BYTES = 512 * 1024;
/** Bytes of all readers at a time, each of which may wait for a slow client with its chunk. */
const MAX_BYTES_OF_READERS = 1024 * 1024;
const MIN_CHUNK_BYTES = 16 * 1024;
let readers = 0;
/** Enough for 100 usual lines, so that a short tail costs one read. */
const TAIL_BYTES = 16 * 1024;
const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

/** One open file of the log; it stays readable when it is renamed or removed meanwhile. */
export class LogFile implements Disposable {
  #descriptor: number;
  readonly #name: string;
  #isPacked: boolean;
  #size: number;
  #position = 0;
  /** Bytes before the position that are not decoded yet. */
  #rest: Buffer = NOTHING;

  readonly inode: number;
  /** That of the plain file that this compressed one has replaced. */
  readonly #inodeBefore: number | undefined;

  constructor(name: string) {
    this.#name = name;
    this.#descriptor = openSync(name, 'r');
    const { ino, size } = fstatSync(this.#descriptor);
    this.inode = ino;
    this.#size = size;
    this.#isPacked = name.endsWith(PACKED);
    if (this.#isPacked) this.#inodeBefore = inodeBefore(this.#descriptor);
  }

  /** Its length at the time of opening; for a compressed file, after unpacking. */
  get size(): number {
    return this.#size;
  }

  /** Whether it still has its name. */
  get isStillThere(): boolean {
    return statSync(this.#name, { throwIfNoEntry: false })?.ino === this.inode;
  }

  /** Whether both are the same part of the log: the inode of an open file is not reused. */
  isSame(other: LogFile): boolean {
    return this.inode === other.inode || (other.#inodeBefore === undefined && this.#inodeBefore === other.inode);
  }

  /** Before its lines are read: they are unpacked into a file without a name. */
  async ready(): Promise<void> {
    if (!this.#isPacked) return;
    const plain = await unpack(this.#descriptor, dirname(this.#name));
    closeSync(this.#descriptor);
    this.#descriptor = plain;
    this.#size = fstatSync(plain).size;
    this.#isPacked = false;
  }

  async *drain(lines: LogLines, limit: number): AsyncGenerator<Buffer> {
    await this.ready();
    readers += 1;
    try {
      for (
        let data: Buffer | undefined = this.#rest;
        data !== undefined;
        data = await this.#read(limit, lines.chunkBytes)
      ) {
        const { rest, frames } = lines.decode(data, 0);
        // A copy, and the chunk itself is dropped: a client that does not read keeps its frames alone.
        this.#rest = rest === data.length ? NOTHING : joinApart([data.subarray(rest)]);
        data = undefined;
        if (frames.length > 0) yield frames;
        if (lines.ended) return;
      }
    } finally {
      readers -= 1;
    }
  }

  /** The rest and the bytes that follow it; undefined at the end of the file, or at the limit. */
  async #read(limit: number, chunkBytes: number): Promise<Buffer | undefined> {
    if (limit === Infinity) this.#restartWhenTruncated();
    const share = Math.max(MIN_CHUNK_BYTES, Math.trunc(MAX_BYTES_OF_READERS / readers));
    const wanted = Math.min(CHUNK_BYTES, chunkBytes, share, limit - this.#position);
    if (wanted <= 0) return undefined;
    const chunk = Buffer.allocUnsafeSlow(this.#rest.length + Math.min(wanted, this.#expected()));
    this.#rest.copy(chunk);
    const bytes = await readAt(this.#descriptor, chunk, this.#rest.length, this.#position);
    if (bytes === 0) return undefined;
    this.#position += bytes;
    if (readers > 1) bytesPassed(chunk.length);
    return chunk.subarray(0, this.#rest.length + bytes);
  }

  /** Moves to the start of the last `count` lines; returns how many of them are not in this file. */
  async seekBack(count: number): Promise<number> {
    await this.ready();
    let missing = count;
    let from = this.size;
    let blockBytes = TAIL_BYTES;
    let isEnd = true;
    let block = NOTHING;
    while (from > 0) {
      const length = Math.min(blockBytes, from);
      from -= length;
      const whole = Buffer.allocUnsafe(length);
      block = whole.subarray(0, await readAt(this.#descriptor, whole, 0, from));
      let at = block.length;
      // The newline of the last line ends it; every one before is the start of a wanted line.
      while ((at = at === 0 ? -1 : block.lastIndexOf(NEWLINE, at - 1)) !== -1) {
        if (isEnd) {
          isEnd = false;
          continue;
        }
        missing -= 1;
        if (missing === 0) {
          this.#startAt(from + at + 1, block.subarray(at + 1));
          return 0;
        }
      }
      blockBytes = Math.min(2 * blockBytes, CHUNK_BYTES);
    }
    this.#startAt(0, block);
    return isEnd ? missing : missing - 1;
  }

  /** `known` is the first piece behind the position; it is not read again if it reaches the end. */
  #startAt(position: number, known: Buffer): void {
    const isAll = position + known.length === this.#size;
    this.#position = isAll ? this.#size : position;
    this.#rest = isAll ? known : NOTHING;
  }

  async seekEnd(): Promise<void> {
    await this.ready();
    this.#position = this.size;
  }

  /** The shim replaces a rotated file, but an operator or a tool may truncate it: then reading starts over. */
  #restartWhenTruncated(): void {
    if (fstatSync(this.#descriptor).size >= this.#position) return;
    this.#position = 0;
    this.#rest = NOTHING;
  }

  /** The size of a buffer: the present rest, and a little for new lines. */
  #expected(): number {
    return Math.max(fstatSync(this.#descriptor).size - this.#position, 4096);
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/**
 * A short piece is read at once: it has mostly been written lately, and a turn of the thread pool costs far more than the
 * read, most of all on a busy machine. The callback form, because a promise of `node:fs/promises` costs twice as much.
 */
async function readAt(descriptor: number, buffer: Buffer, offset: number, position: number): Promise<number> {
  const length = buffer.length - offset;
  if (length <= TAIL_BYTES) return readSync(descriptor, buffer, offset, length, position);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  read(descriptor, buffer, offset, length, position, (error, bytes) => {
    if (error) reject(error);
    else resolve(bytes);
  });
  return await promise;
}

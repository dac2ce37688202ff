import { closeSync, fstatSync, openSync, read, statSync } from 'node:fs';

import { hasCode } from '../../lib/errors.ts';
import { parseEntry } from '../log-entry.ts';
import { lineOf, type Line, type Position } from './line.ts';

/** The most that is read at once. */
export type BatchLimits = Readonly<{ lines: number; bytes: number }>;

type OpenFile = Readonly<{ descriptor: number; inode: number }>;

const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/**
 * Reads the buffer of a container, which the shim writes and rotates, from a position on. It holds one file open at
 * most, and none after `close`.
 */
export class BufferReader {
  readonly #path: string;
  readonly #containerId: string;
  #at: Position;
  #file: OpenFile | undefined;
  #offset = 0;
  /** The place comes from a position: the next line must confirm it. */
  #isGuess = false;

  constructor(path: string, containerId: string, at: Position) {
    this.#path = path;
    this.#containerId = containerId;
    this.#at = at;
  }

  /** The next lines, as many as the limits allow, but at least one if there is one. */
  async next(limits: BatchLimits): Promise<readonly Line[]> {
    const batch = new Collected(limits);
    while (!batch.isFull) {
      this.#file ??= this.#openAtPosition();
      if (this.#file === undefined) break;
      // Checked before the read: a file that was rotated by then cannot grow any more.
      const isRotated = statSync(this.#path, { throwIfNoEntry: false })?.ino !== this.#file.inode;
      const chunk = await readChunk(this.#file.descriptor, this.#offset);
      const before = this.#offset;
      if (!this.#take(this.#file.inode, chunk, batch)) this.#restart();
      else if (this.#offset === before && !batch.isFull && !(isRotated && this.#openNewer())) break;
    }
    return batch.lines;
  }

  /** Goes on from another position. */
  seek(to: Position): void {
    this.close();
    this.#at = to;
  }

  close(): void {
    closeIf(this.#file);
    this.#file = undefined;
  }

  /** Takes the complete lines of a chunk; false if this is not the place where the position was. */
  #take(inode: number, chunk: Buffer, batch: Collected): boolean {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      const entry = parseEntry(chunk.toString('utf8', from, end));
      if (this.#isGuess && entry?.seq !== this.#at.seq + 1) return false;
      this.#isGuess = false;
      const offset = this.#offset + end + 1 - from;
      if (entry !== undefined && entry.seq > this.#at.seq) {
        const line = lineOf(entry, this.#at, { inode, offset }, this.#containerId);
        if (!batch.takes(line)) return true;
        this.#at = line.after;
      }
      this.#offset = offset;
      from = end + 1;
      if (batch.isFull) return true;
    }
    return true;
  }

  /** From the oldest file on, skipping the lines that were read before. */
  #restart(): void {
    this.seek({ ...this.#at, inode: 0, offset: 0 });
  }

  #openAtPosition(): OpenFile | undefined {
    const { inode, offset } = this.#at;
    const [found, oldest] = this.#search((file) => file.inode === inode && fstatSync(file.descriptor).size >= offset);
    this.#offset = found === undefined ? 0 : offset;
    this.#isGuess = found !== undefined && offset > 0;
    if (found !== undefined) closeIf(oldest);
    return found ?? oldest;
  }

  /** The file after the open one; the oldest if the open one has been rotated away. */
  #openNewer(): boolean {
    const [own, newer] = this.#search(({ inode }) => inode === this.#file?.inode);
    closeIf(own);
    if (newer === undefined) return false;
    this.close();
    this.#file = newer;
    this.#offset = 0;
    return true;
  }

  /** The wanted file, and the one after it; without it the oldest. */
  #search(isWanted: (file: OpenFile) => boolean): [OpenFile | undefined, OpenFile | undefined] {
    let newer: OpenFile | undefined;
    for (let number = 0; ; number += 1) {
      const file = tryOpen(number === 0 ? this.#path : `${this.#path}.${number}`);
      // Between two steps of a rotation only rotated files exist.
      if (file === undefined && number > 0) return [undefined, newer];
      if (file === undefined) continue;
      if (isWanted(file)) return [file, newer];
      closeIf(newer);
      newer = file;
    }
  }
}

class Collected {
  readonly #limits: BatchLimits;
  #bytes = 0;
  readonly lines: Line[] = [];
  isFull = false;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  takes(line: Line): boolean {
    this.isFull = this.lines.length > 0 && this.#bytes + line.text.length > this.#limits.bytes;
    if (this.isFull) return false;
    this.lines.push(line);
    this.#bytes += line.text.length;
    this.isFull = this.lines.length >= this.#limits.lines;
    return true;
  }
}

function closeIf(file: OpenFile | undefined): void {
  if (file !== undefined) closeSync(file.descriptor);
}

function tryOpen(path: string): OpenFile | undefined {
  try {
    const descriptor = openSync(path, 'r');
    return { descriptor, inode: fstatSync(descriptor).ino };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** The content from `position` on: a chunk, or more for a long line. */
async function readChunk(descriptor: number, position: number): Promise<Buffer> {
  for (let size = CHUNK_BYTES; ; size *= 2) {
    const buffer = Buffer.allocUnsafe(size);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    read(descriptor, buffer, 0, size, position, (error, bytes) => (error === null ? resolve(bytes) : reject(error)));
    const bytes = await promise;
    const chunk = buffer.subarray(0, bytes);
    if (bytes < size || chunk.includes(NEWLINE)) return chunk;
  }
}

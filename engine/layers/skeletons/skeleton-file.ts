import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';

import type { BytePath } from '../../host/files/openat.ts';
import { SpareMemory } from '../threads/spare-memory.ts';

/**
 * A plain archive without the content of its files: literal bytes, and runs of bytes of files. In blocks, each
 * compressed for itself: the length of the compressed block, the length of the block, the block.
 */
export type Part =
  | { kind: 'bytes'; bytes: Buffer }
  /** The file of the following runs. */
  | { kind: 'file'; path: BytePath }
  | { kind: 'run'; offset: number; length: number };

const MAGIC = Buffer.from('gskel\0\0\x01', 'latin1');
const TAG = { bytes: 0, file: 1, run: 2 } as const;
/** A reader holds one block, and there may be a hundred that wait for their clients. */
const BLOCK_BYTES = 32 * 1024;
const MAX_BYTES = 16 * 1024;
/** Blocks of older versions. */
const MAX_BLOCK_BYTES = 384 * 1024;
/** A tag, two numbers of six bytes. */
const RUN_BYTES = 13;
const LENGTHS_BYTES = 8;
const blocks = new SpareMemory(BLOCK_BYTES + MAX_BYTES + RUN_BYTES);

/** Writes a new skeleton; synchronous, for worker threads. */
export class SkeletonWriter implements Disposable {
  readonly #fd: number;
  readonly #taken = blocks.take();
  readonly #block = this.#taken.memory;
  #used = 0;
  #sizeBytes = MAGIC.length;

  constructor(file: string) {
    this.#fd = openSync(file, 'wx', 0o600);
    writeSync(this.#fd, MAGIC);
  }

  /** The size of the skeleton so far, as it will be on the disk. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  bytes(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += MAX_BYTES) {
      this.#text(TAG.bytes, bytes.subarray(at, at + MAX_BYTES));
    }
  }

  file(path: BytePath): void {
    this.#text(TAG.file, Buffer.from(path, 'latin1'));
  }

  run(offset: number, length: number): void {
    this.#block[this.#used] = TAG.run;
    this.#block.writeUIntLE(offset, this.#used + 1, 6);
    this.#block.writeUIntLE(length, this.#used + 7, 6);
    this.#grow(RUN_BYTES);
  }

  /** Ends it; the caller syncs it. */
  end(): void {
    this.#flush();
  }

  [Symbol.dispose](): void {
    this.#taken[Symbol.dispose]();
    closeSync(this.#fd);
  }

  #text(tag: number, bytes: Buffer): void {
    this.#block[this.#used] = tag;
    this.#block.writeUInt32LE(bytes.length, this.#used + 1);
    bytes.copy(this.#block, this.#used + 5);
    this.#grow(5 + bytes.length);
  }

  #grow(bytes: number): void {
    this.#used += bytes;
    if (this.#used >= BLOCK_BYTES) this.#flush();
  }

  #flush(): void {
    if (this.#used === 0) return;
    const packed = zstdCompressSync(this.#block.subarray(0, this.#used));
    const lengths = Buffer.alloc(LENGTHS_BYTES);
    lengths.writeUInt32LE(packed.length, 0);
    lengths.writeUInt32LE(this.#used, 4);
    writeSync(this.#fd, Buffer.concat([lengths, packed]));
    this.#sizeBytes += lengths.length + packed.length;
    this.#used = 0;
  }
}

/** The parts of a skeleton, in their order; `bytes` are valid until the next part. Throws for a malformed file. */
export function* partsOf(file: string): Generator<Part> {
  const fd = openSync(file, 'r');
  try {
    if (!read(fd, MAGIC.length)?.equals(MAGIC)) throw damaged(file);
    for (let lengths = read(fd, LENGTHS_BYTES); lengths !== undefined; lengths = read(fd, LENGTHS_BYTES)) {
      const packed = read(fd, lengths.readUInt32LE(0));
      if (packed === undefined) throw damaged(file);
      const block = zstdDecompressSync(packed, { maxOutputLength: MAX_BLOCK_BYTES });
      if (block.length !== lengths.readUInt32LE(4)) throw damaged(file);
      yield* partsIn(block);
    }
  } finally {
    closeSync(fd);
  }
}

function* partsIn(block: Buffer): Generator<Part> {
  for (let at = 0; at < block.length;) {
    if (block[at] === TAG.run) {
      yield { kind: 'run', offset: block.readUIntLE(at + 1, 6), length: block.readUIntLE(at + 7, 6) };
      at += RUN_BYTES;
      continue;
    }
    const end = at + 5 + block.readUInt32LE(at + 1);
    const bytes = block.subarray(at + 5, end);
    yield block[at] === TAG.file ? { kind: 'file', path: bytes.toString('latin1') } : { kind: 'bytes', bytes };
    at = end;
  }
}

/** A number of bytes from the file's position on; undefined at its end. */
function read(fd: number, length: number): Buffer | undefined {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const bytes = readSync(fd, buffer, filled, length - filled, null);
    if (bytes === 0) break;
    filled += bytes;
  }
  return filled === length ? buffer : undefined;
}

function damaged(file: string): Error {
  return new Error(`${file} is damaged`);
}

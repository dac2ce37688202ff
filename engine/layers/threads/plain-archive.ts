import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

import { EngineError } from '../../lib/errors.ts';
import { rebuild } from '../skeletons/rebuild.ts';
import type { ArchiveSource } from './archive-messages.ts';
import { decompressed } from './compression.ts';
import type { OutgoingChunks } from './outgoing-chunks.ts';
import { SpareMemory } from './spare-memory.ts';

const READ_BYTES = 256 * 1024;
/** Pieces of an archive on its way to a client, of which a hundred may wait. */
const SENT_BYTES = 32 * 1024;
const readMemory = new SpareMemory(READ_BYTES);
const PROGRESS_BYTES = 4 * 1024 * 1024;

/** Sends the plain archive of a layer to another thread. */
export async function readPlain(source: ArchiveSource, chunks: OutgoingChunks): Promise<void> {
  if (source.kind === 'skeleton') {
    for (const chunk of rebuilt(source, () => chunks.fresh())) await chunks.send(chunk);
    return;
  }
  let [chunk, used] = [chunks.fresh(), 0];
  for await (const piece of wholeChunks(source, SENT_BYTES)) {
    for (let at = 0; at < piece.length;) {
      const count = piece.copy(chunk, used, at);
      used += count;
      at += count;
      if (used < chunk.length) continue;
      await chunks.send(chunk);
      [chunk, used] = [chunks.fresh(), 0];
    }
  }
  if (used > 0) await chunks.send(chunk.subarray(0, used));
}

/** The plain archive of a layer; each chunk is valid until the next one. */
export async function* plainChunks(source: ArchiveSource): AsyncGenerator<Buffer> {
  if (source.kind === 'skeleton') {
    using taken = readMemory.take();
    const { memory } = taken;
    for (const chunk of rebuilt(source, () => memory)) {
      yield chunk;
      await setImmediate(); // yields to other work of this thread
    }
    return;
  }
  yield* wholeChunks(source, READ_BYTES);
}

/** Reads and decompresses an archive in pieces of this size. */
async function* wholeChunks(
  { file }: Extract<ArchiveSource, { kind: 'whole' }>,
  pieceBytes: number,
): AsyncGenerator<Buffer> {
  const fd = openSync(file, 'r');
  try {
    yield* decompressed(pieceBytes === READ_BYTES ? chunksOf(fd) : smallChunksOf(fd, pieceBytes), pieceBytes);
  } finally {
    closeSync(fd);
  }
}

async function* smallChunksOf(fd: number, bytes: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(bytes);
  for (let position = 0, read = 0; (read = readSync(fd, buffer, 0, bytes, position)) > 0; position += read) {
    yield buffer.subarray(0, read);
    await setImmediate(); // yields to other work of this thread
  }
}

/** Throws at the end when the files of the layer are no longer those of the archive. */
function* rebuilt<Memory extends Buffer>(
  { file, folder, digest }: Extract<ArchiveSource, { kind: 'skeleton' }>,
  fresh: () => Memory,
): Generator<Memory> {
  const hash = createHash('sha256');
  for (const chunk of rebuild(file, folder, fresh)) {
    hash.update(chunk);
    yield chunk;
  }
  if (`sha256:${hash.digest('hex')}` === digest) return;
  throw new EngineError('failed', `the files of a layer were changed: ${folder}. Load its image again`);
}

/** Reads a file from its beginning, regardless of its position; each chunk reuses the memory of the one before. */
export async function* chunksOf(
  fd: number,
  onProgress: (bytes: number) => void = () => undefined,
): AsyncGenerator<Buffer> {
  using taken = readMemory.take();
  const buffer = taken.memory;
  let position = 0;
  let told = 0;
  for (;;) {
    const bytes = readSync(fd, buffer, 0, READ_BYTES, position);
    if (bytes === 0) break;
    position += bytes;
    yield buffer.subarray(0, bytes);
    if (position - told >= PROGRESS_BYTES) {
      told = position;
      onProgress(position);
    }
    await setImmediate(); // yields to other work of this thread
  }
  onProgress(position);
}

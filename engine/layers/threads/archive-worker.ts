import { createHash } from 'node:crypto';
import { closeSync, readSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';

import { holdAt } from '../../host/files/look-at.ts';
import { EngineError } from '../../lib/errors.ts';
import { LayerRules } from '../pack/layer-rules.ts';
import { pack } from '../pack/pack.ts';
import { LayerExtractor } from '../tar/extract.ts';
import { badArchive } from '../tar/tar-header.ts';
import { TarReader, type ArchiveLimits } from '../tar/tar-reader.ts';
import type { Extracted, FromWorker, Received, Results, ToWorker, Unpacked, Work } from './archive-messages.ts';
import { ArrivingStream } from './arriving-stream.ts';
import { decompressed, detectCompression, MAGIC_BYTES } from './compression.ts';
import { FileWriter } from './file-writer.ts';
import { Unpacker } from './unpack.ts';

const READ_BYTES = 1024 * 1024;
const PROGRESS_BYTES = 4 * 1024 * 1024;

// The body of the worker thread: messages bring work, several pieces at a time, which yield to each other at each
// chunk.
const port = parentPort!;
const streams = new Map<number, ArrivingStream>();

port.on('message', (message: ToWorker) => {
  // oxlint-disable-next-line typescript/no-floating-promises -- what fails here ends the thread, and fails what it was at
  if ('start' in message) void perform(message.id, message.start);
  else if ('chunk' in message) streams.get(message.id)?.push(message.chunk);
  else streams.get(message.id)?.end(message.end.failure);
});

async function perform(id: number, work: Work): Promise<void> {
  const stream = new ArrivingStream(({ buffer }) => tell({ id, consumed: buffer }, [buffer]));
  streams.set(id, stream);
  try {
    tell({ id, result: await resultOf(id, work, stream) });
  } catch (error) {
    tell({ id, failure: describe(error) });
  } finally {
    streams.delete(id);
  }
}

async function resultOf(id: number, work: Work, stream: ArrivingStream): Promise<Results[Work['kind']]> {
  switch (work.kind) {
    case 'receive':
      return await receive(stream, work.file, work.limits);
    case 'unpack':
      return await unpack(stream, work.directory, work.limits);
    case 'extract':
      return await extract(id, work);
    case 'packLayer':
      return await packLayer(work);
  }
}

async function receive(stream: AsyncIterable<Buffer>, file: string, limits: ArchiveLimits): Promise<Received> {
  using writer = new FileWriter(file);
  for await (const chunk of stream) {
    writer.write(chunk, writer.sizeBytes);
    if (writer.sizeBytes > limits.bytes) throw badArchive(`it has more bytes than the limit of ${limits.bytes}`);
  }
  return { digest: writer.digest(), sizeBytes: writer.sizeBytes };
}

async function unpack(stream: AsyncIterable<Buffer>, directory: string, limits: ArchiveLimits): Promise<Unpacked[]> {
  using unpacker = new Unpacker(directory);
  const reader = new TarReader(unpacker, limits);
  for await (const chunk of decompressed(stream)) reader.push(chunk);
  reader.end();
  return unpacker.found;
}

async function extract(id: number, work: Extract<Work, { kind: 'extract' }>): Promise<Extracted> {
  using extractor = new LayerExtractor(work.target, work.lower);
  const reader = new TarReader(extractor, work.limits);
  const head = Buffer.alloc(MAGIC_BYTES);
  readSync(work.fd, head, 0, head.length, 0);
  // Without compression the file's digest is the layer's, and was computed during the upload.
  const hash = detectCompression(head) === 'none' ? undefined : createHash('sha256');
  for await (const chunk of decompressed(chunksOf(work.fd, (bytes) => tell({ id, progress: bytes })))) {
    hash?.update(chunk);
    reader.push(chunk);
  }
  reader.end();
  extractor.complete();
  const diffId = hash === undefined ? work.digest : `sha256:${hash.digest('hex')}`;
  return { diffId, sizeBytes: extractor.sizeBytes };
}

async function packLayer(work: Extract<Work, { kind: 'packLayer' }>): Promise<Received> {
  using held = new DisposableStack();
  const root = held.adopt(holdAt(-1, Buffer.from(work.upper).toString('latin1')), closeSync);
  const writer = held.use(new FileWriter(work.file));
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES); // written before the next chunk is asked for
  const rules = new LayerRules(work.lower, work.mountPoints);
  for (const chunk of pack({ held: root, name: undefined }, () => buffer, rules)) {
    writer.write(chunk, writer.sizeBytes);
    await setImmediate(); // yields to other work of this thread
  }
  return { digest: writer.digest(), sizeBytes: writer.sizeBytes };
}

/** Reads a file from its beginning, regardless of its position; each chunk reuses the memory of the one before. */
async function* chunksOf(fd: number, onProgress: (bytes: number) => void): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
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

function tell(message: FromWorker, transferred: ArrayBuffer[] = []): void {
  port.postMessage(message, transferred);
}

/** Errors lose their class and their code between threads. */
function describe(error: unknown): Extract<FromWorker, { failure: unknown }>['failure'] {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = 'code' in error ? String(error.code) : undefined;
  return {
    message: error.message,
    kind: error instanceof EngineError ? error.kind : undefined,
    code,
    stack: error.stack,
  };
}

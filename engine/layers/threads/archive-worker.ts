import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';

import { EngineError } from '../../lib/errors.ts';
import { SkeletonAttempt } from '../skeletons/attempt.ts';
import { LayerExtractor } from '../tar/extract.ts';
import { badArchive } from '../tar/tar-header.ts';
import { TarReader, type ArchiveLimits } from '../tar/tar-reader.ts';
import type { Extracted, FromWorker, Received, Results, ToWorker, Unpacked, Work } from './archive-messages.ts';
import { ArrivingStream } from './arriving-stream.ts';
import { compress } from './compress.ts';
import { decompressed, detectCompression, MAGIC_BYTES } from './compression.ts';
import { EntryGroups } from './entry-groups.ts';
import { FileWriter } from './file-writer.ts';
import { OutgoingChunks } from './outgoing-chunks.ts';
import { describeLayer, packLayer } from './pack-layer.ts';
import { chunksOf, readPlain } from './plain-archive.ts';
import { extractContext, spoolContext } from './spool-context.ts';
import { Unpacker } from './unpack.ts';

// The body of the worker thread: messages bring work, several pieces at a time, which yield to each other at each
// chunk.
const port = parentPort!;
const streams = new Map<number, ArrivingStream>();
const outgoing = new Map<number, OutgoingChunks>();
const listings = new Map<number, EntryGroups>();
/** Work whose result is no longer wanted. */
const stopped = new Set<number>();

port.on('message', (message: ToWorker) => {
  // oxlint-disable-next-line typescript/no-floating-promises -- what fails here ends the thread, and fails what it was at
  if ('start' in message) void handleWork(message.id, message.start);
  else if ('chunks' in message) streams.get(message.id)?.push(message.chunks);
  else if ('taken' in message) outgoing.get(message.id)?.giveBack(message.taken);
  else if ('listed' in message) listings.get(message.id)?.taken();
  else if ('stop' in message) stop(message.id);
  else streams.get(message.id)?.end(message.end.failure);
});

function stop(id: number): void {
  if (streams.has(id)) stopped.add(id);
  outgoing.get(id)?.stop();
}

async function handleWork(id: number, work: Work): Promise<void> {
  const stream = new ArrivingStream((consumed) => tell({ id, consumed }));
  streams.set(id, stream);
  if (work.kind === 'read') outgoing.set(id, new OutgoingChunks((output) => tell({ id, output }, [output.buffer])));
  if (work.kind === 'spoolContext') listings.set(id, new EntryGroups((entries) => tell({ id, entries })));
  try {
    tell({ id, result: await resultOf(id, work, stream) });
  } catch (error) {
    tell({ id, failure: describe(error) });
  } finally {
    streams.delete(id);
    stopped.delete(id);
    outgoing.get(id)?.[Symbol.dispose]();
    outgoing.delete(id);
    listings.delete(id);
  }
}

async function resultOf(id: number, work: Work, stream: ArrivingStream): Promise<Results[Work['kind']]> {
  switch (work.kind) {
    case 'receive':
      return await receive(wanted(id, stream), work.file, work.limits);
    case 'unpack':
      return await unpack(wanted(id, decompressed(stream)), work.directory, work.limits);
    case 'extract':
      return await extract(id, work, stream);
    case 'spoolContext':
      return await spoolContext(wanted(id, decompressed(stream)), work, listings.get(id)!);
    case 'extractContext':
      return await extractContext(work, () => throwIfStopped(id));
    case 'packLayer':
      return await packLayer(work, () => throwIfStopped(id));
    case 'describeLayer':
      return await describeLayer(work, () => throwIfStopped(id));
    case 'compress':
      return await compress(work, (bytes) => tell({ id, progress: bytes }));
    case 'read':
      await readPlain(work.source, outgoing.get(id)!);
      return undefined;
  }
}

/** Chunks of an archive until their result is no longer wanted. */
async function* wanted(id: number, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    throwIfStopped(id);
    yield chunk;
  }
}

function throwIfStopped(id: number): void {
  if (stopped.has(id)) throw new EngineError('failed', 'the archive is no longer wanted');
}

async function receive(stream: AsyncIterable<Buffer>, file: string, limits: ArchiveLimits): Promise<Received> {
  using writer = new FileWriter(file);
  for await (const chunk of stream) {
    writer.write(chunk, writer.sizeBytes);
    if (writer.sizeBytes > limits.bytes) throw badArchive(`it has more bytes than the limit of ${limits.bytes}`);
  }
  return { digest: writer.digest(), sizeBytes: writer.sizeBytes };
}

async function unpack(chunks: AsyncIterable<Buffer>, directory: string, limits: ArchiveLimits): Promise<Unpacked[]> {
  using unpacker = new Unpacker(directory);
  const reader = new TarReader(unpacker, limits);
  for await (const chunk of chunks) reader.push(chunk);
  reader.end();
  return unpacker.found;
}

async function extract(
  id: number,
  work: Extract<Work, { kind: 'extract' }>,
  stream: AsyncIterable<Buffer>,
): Promise<Extracted> {
  using extractor = new LayerExtractor(work.target);
  const head = Buffer.alloc(MAGIC_BYTES);
  readSync(work.fd, head, 0, head.length, 0);
  // Without compression the file's digest is the layer's, and was computed during the upload.
  const isPlain = detectCompression(head) === 'none';
  const hash = isPlain ? undefined : createHash('sha256');
  using attempt = isPlain ? new SkeletonAttempt(extractor, work.skeleton) : undefined;
  const reader = new TarReader(attempt?.recorder ?? extractor, work.limits);
  const push = (chunk: Buffer): void => reader.push(chunk);
  let archiveBytes = 0;
  const chunks = chunksOf(work.fd, (bytes) => tell({ id, progress: bytes }));
  for await (const chunk of wanted(id, decompressed(chunks))) {
    archiveBytes += chunk.length;
    hash?.update(chunk);
    if (attempt === undefined) push(chunk);
    else attempt.recorder.through(chunk, push);
  }
  reader.end();
  extractor.complete(extractor.impliesFolders ? await lowerFrom(stream) : []);
  const archive = { folder: work.target, digest: work.digest, bytes: archiveBytes, isPlain: extractor.isPlain };
  const hasSkeleton = (await attempt?.gives(archive)) ?? false;
  const diffId = hash === undefined ? work.digest : `sha256:${hash.digest('hex')}`;
  return { diffId, sizeBytes: extractor.sizeBytes, archiveBytes, hasSkeleton };
}

async function lowerFrom(stream: AsyncIterable<Buffer>): Promise<string[]> {
  const text = Buffer.concat(await Array.fromAsync(stream, (chunk) => Buffer.from(chunk))).toString();
  return JSON.parse(text) as string[];
}

function tell(message: FromWorker, transferred: ArrayBuffer[] = []): void {
  port.postMessage(message, transferred);
}

/** Errors lose their class and their code between threads. */
function describe(error: unknown): Extract<FromWorker, { failure: unknown }>['failure'] {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = 'code' in error ? String(error.code) : undefined;
  const syscall = 'syscall' in error ? String(error.syscall) : undefined;
  return {
    message: error.message,
    kind: error instanceof EngineError ? error.kind : undefined,
    code,
    syscall,
    stack: error.stack,
  };
}

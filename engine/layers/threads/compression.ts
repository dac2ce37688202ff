import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import type { Readable, Transform, Writable } from 'node:stream';
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';

import { bytesPassed } from '../../host/garbage.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { badArchive } from '../tar/tar-header.ts';

type Compression = 'none' | 'gzip' | 'bzip2' | 'xz' | 'zstd';

const MAGIC: readonly (readonly [Compression, readonly number[]])[] = [
  ['gzip', [0x1f, 0x8b]],
  ['bzip2', [0x42, 0x5a, 0x68]],
  ['xz', [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]],
  ['zstd', [0x28, 0xb5, 0x2f, 0xfd]],
];
export const MAGIC_BYTES = 6;
const CHUNK_BYTES = 256 * 1024;
/** A frame may ask for a window of gigabytes; tools ask for 8 MiB up to level 19, and for this at level 20. */
const ZSTD_WINDOW_LOG = 25;
/** Memory of xz, which needs 65 MiB at its highest level. */
const XZ_MEMORY_MIB = 128;

/** The compression, from the first bytes of a file. */
export function detectCompression(head: Uint8Array): Compression {
  const found = MAGIC.find(([, magic]) => magic.every((byte, index) => head[index] === byte));
  return found?.[0] ?? 'none';
}

/** Detects the compression of a file. */
export async function compressionOf(path: string): Promise<Compression> {
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MAGIC_BYTES), 0, MAGIC_BYTES, 0);
  return detectCompression(buffer.subarray(0, bytesRead));
}

/** The bytes of `source`, decompressed. Chunks on both sides are valid until the next one is requested. */
export async function* decompressed(source: AsyncIterable<Buffer>, chunkBytes = CHUNK_BYTES): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  try {
    const head = await firstBytes(chunks);
    const compression = detectCompression(head);
    const whole = prepended(head, chunks);
    if (compression === 'none') yield* whole;
    else yield* through(whole, compression, chunkBytes);
  } finally {
    await chunks.return?.();
  }
}

type Decompressor = {
  input: Writable;
  output: Readable;
  /** Rejects with a reason that the streams do not report. */
  ended: Promise<void>;
  stop: () => void;
};

async function* through(
  source: AsyncIterable<Buffer>,
  compression: Exclude<Compression, 'none'>,
  chunkBytes: number,
): AsyncGenerator<Buffer> {
  const { input, output, ended, stop } = decompressor(compression, chunkBytes);
  const settled = Promise.allSettled([feed(source, input), ended]);
  let last: Buffer | undefined;
  try {
    for await (const chunk of output as AsyncIterable<Buffer>) {
      yield chunk;
      last = chunk;
      // A decompressor fills its memory to the end before it takes new one.
      if (chunk.byteOffset + chunk.length === chunk.buffer.byteLength) free(chunk);
      else bytesPassed(chunk.length);
    }
    if (last !== undefined) free(last);
  } catch (error) {
    // A tool that is missing or fails only breaks its pipes; `ended` has the reason.
    stop();
    throw explainCompressionError(reasonOf(await settled) ?? error, compression);
  } finally {
    stop();
    bytesPassed(chunkBytes); // the memory for more output
  }
  const reason = reasonOf(await settled);
  if (reason !== undefined) throw explainCompressionError(reason, compression);
}

/** Writes one chunk at a time, because its memory is used again for the next one. Ends early when nobody reads the result. */
async function feed(source: AsyncIterable<Buffer>, input: Writable): Promise<void> {
  let written = Promise.withResolvers<void>();
  written.resolve(); // nothing so far
  input.on('error', (error) => written.reject(error)).once('close', () => written.resolve());
  try {
    for await (const chunk of source) {
      if (input.destroyed) return;
      written = Promise.withResolvers<void>();
      input.write(chunk, (error) => (error ? written.reject(error) : written.resolve()));
      await written.promise;
    }
    input.end();
  } catch (error) {
    input.destroy(error as Error);
    throw error;
  }
}

/** At once: the collector would come late. */
function free({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}

function reasonOf([fed, ended]: readonly PromiseSettledResult<void>[]): unknown {
  const feedingFailed = fed?.status === 'rejected' ? (fed.reason as unknown) : undefined;
  const isBrokenPipe = ['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED', 'ENOENT'].some((code) =>
    hasCode(feedingFailed, code),
  );
  if (feedingFailed !== undefined && !isBrokenPipe) return feedingFailed;
  return ended?.status === 'rejected' ? ended.reason : feedingFailed;
}

function decompressor(compression: Exclude<Compression, 'none'>, chunkSize: number): Decompressor {
  switch (compression) {
    case 'gzip':
      return inProcess(createGunzip({ chunkSize }));
    case 'zstd': {
      const params = { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG };
      return inProcess(createZstdDecompress({ chunkSize, params }));
    }
    case 'xz':
    case 'bzip2':
      return byTool(compression);
  }
}

function inProcess(stream: Transform): Decompressor {
  return { input: stream, output: stream, ended: Promise.resolve(), stop: () => void stream.destroy() };
}

/** Runs the system's program, which reads and writes at its own pace. */
function byTool(tool: 'xz' | 'bzip2'): Decompressor {
  const limit = tool === 'xz' ? [`--memlimit-decompress=${XZ_MEMORY_MIB}MiB`] : [];
  const env = { PATH: process.env.PATH, LC_ALL: 'C' };
  const child = spawn(tool, ['-dc', ...limit], { stdio: ['pipe', 'pipe', 'pipe'], env });
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(0, 1000);
  });
  child.once('error', reject);
  child.once('close', (code, signal) => {
    if (code === 0) resolve();
    else if (/memory usage limit/i.test(complaint))
      reject(badArchive(`its xz data needs more than ${XZ_MEMORY_MIB} MiB`));
    else reject(badArchive(complaint.trim() || `${tool} ended with ${code ?? signal}`));
  });
  return {
    input: child.stdin,
    output: child.stdout,
    ended,
    stop: () => {
      child.stdout.destroy();
      child.kill();
    },
  };
}

async function firstBytes(chunks: AsyncIterator<Buffer>): Promise<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  while (head.length < MAGIC_BYTES) {
    const { done, value } = await chunks.next();
    if (done === true) break;
    head = head.length === 0 && value.length >= MAGIC_BYTES ? value : Buffer.concat([head, value]);
  }
  return head;
}

async function* prepended(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

function explainCompressionError(error: unknown, compression: Compression): unknown {
  if (hasCode(error, 'ENOENT')) {
    return new EngineError(
      'failed',
      `the archive is compressed with ${compression}, but that program is not installed`,
      {
        cause: error,
      },
    );
  }
  if (hasCode(error, 'Z_BUF_ERROR') || hasCode(error, 'ZSTD_error_srcSize_wrong')) {
    return badArchive(`its ${compression} data is cut`, error);
  }
  if (hasCode(error, 'ZSTD_error_frameParameter_windowTooLarge')) {
    return badArchive(`its zstd data needs a window of more than ${2 ** (ZSTD_WINDOW_LOG - 20)} MiB`, error);
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code.startsWith('Z_') || code.startsWith('ZSTD_')) return badArchive(`its ${compression} data is damaged`, error);
  return error;
}

import { gzipSync } from 'node:zlib';

import { loadLibrary } from './libc.ts';

/** Two thirds of the time of level 3, for 5 % more bytes of a program. */
const LIBRARY_LEVEL = 1;
/** Half the time of level 6, for 3 % more bytes of a program. */
const ZLIB_LEVEL = 4;

/** Makes a member of a gzip file; a file may consist of several. The result is valid until the next call. */
type Gzip = (content: Buffer) => Buffer;

let ofThread: { mostBytes: number; gzip: Gzip } | undefined;

/**
 * With libdeflate, which many Debian packages depend on, or else with Node's zlib. A thread has one: its memory is never
 * freed.
 */
export function gzipper(mostBytes: number): Gzip {
  if (ofThread?.mostBytes !== mostBytes) {
    const gzip = byLibrary(mostBytes) ?? ((content: Buffer) => gzipSync(content, { level: ZLIB_LEVEL }));
    ofThread = { mostBytes, gzip };
  }
  return ofThread.gzip;
}

function byLibrary(mostBytes: number): Gzip | undefined {
  const bind = libdeflate();
  if (bind === undefined) return undefined;
  const create = bind<[number], bigint>('void *libdeflate_alloc_compressor(int level)');
  const bound = bind<[bigint, number], number>('size_t libdeflate_gzip_compress_bound(void *compressor, size_t bytes)');
  const compress = bind<[bigint, Buffer, number, Buffer, number], number>(
    'size_t libdeflate_gzip_compress(void *compressor, const uint8_t *in, size_t bytes, uint8_t *out, size_t room)',
  );
  const compressor = create(LIBRARY_LEVEL);
  const output = Buffer.allocUnsafeSlow(bound(compressor, mostBytes));
  return (content) => {
    const bytes = compress(compressor, content, content.length, output, output.length);
    if (bytes === 0) throw new Error('libdeflate has no room');
    return output.subarray(0, bytes);
  };
}

function libdeflate(): ReturnType<typeof loadLibrary> | undefined {
  try {
    return loadLibrary('libdeflate.so.0');
  } catch {
    return undefined; // it is not installed
  }
}

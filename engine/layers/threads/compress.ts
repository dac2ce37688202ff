import { constants, gzipSync, zstdCompressSync } from 'node:zlib';

import { bytesPassed } from '../../host/garbage.ts';
import { gzipper } from '../../host/gzip.ts';
import type { LayerCompression, Received, Work } from './archive-messages.ts';
import { FileWriter } from './file-writer.ts';
import { plainChunks } from './plain-archive.ts';
import { SpareMemory } from './spare-memory.ts';

/**
 * A member of the file has this much content, regardless of the chunks, so that an archive always gives the same bytes.
 */
const MEMBER_BYTES = 1024 * 1024;
const members = new SpareMemory(MEMBER_BYTES);

type Compressed = Pick<Extract<Work, { kind: 'compress' }>, 'source' | 'file' | 'compression'>;

/** Writes the compressed archive of a layer into a new file, in members that need no more memory than one of them. */
export async function compress(
  { source, file, compression }: Compressed,
  onProgress: (bytes: number) => void,
): Promise<Received> {
  using writer = new FileWriter(file);
  const memberOf = compressorOf(compression);
  using taken = members.take();
  const member = taken.memory;
  let used = 0;
  const flush = (): void => {
    writer.write(memberOf(member.subarray(0, used)), writer.sizeBytes);
    bytesPassed(used); // reading leaves garbage
    used = 0;
    onProgress(writer.sizeBytes);
  };
  for await (const chunk of plainChunks(source)) {
    for (let at = 0; at < chunk.length;) {
      const count = chunk.copy(member, used, at);
      used += count;
      at += count;
      if (used === MEMBER_BYTES) flush();
    }
  }
  if (used > 0 || writer.sizeBytes === 0) flush();
  return { digest: writer.digest(), sizeBytes: writer.sizeBytes };
}

/** Files of both kinds may consist of several members. */
function compressorOf({ kind, level }: LayerCompression): (content: Buffer) => Buffer {
  if (kind === 'zstd') {
    const params = level === undefined ? {} : { [constants.ZSTD_c_compressionLevel]: level };
    return (content) => zstdCompressSync(content, { params });
  }
  return level === undefined ? gzipper(MEMBER_BYTES) : (content) => gzipSync(content, { level });
}

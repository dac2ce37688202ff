import { bytesPassed } from '../../host/garbage.ts';
import { gzipper } from '../../host/gzip.ts';
import type { ArchiveSource, Received } from './archive-messages.ts';
import { FileWriter } from './file-writer.ts';
import { plainChunks } from './plain-archive.ts';
import { SpareMemory } from './spare-memory.ts';

/**
 * A member of the file has this much content, regardless of the chunks, so that an archive always gives the same bytes.
 */
const MEMBER_BYTES = 1024 * 1024;
const members = new SpareMemory(MEMBER_BYTES);

/** Writes the archive of a layer into a new file with gzip, in members that need no more memory than one of them. */
export async function compress(
  source: ArchiveSource,
  file: string,
  onProgress: (bytes: number) => void,
): Promise<Received> {
  using writer = new FileWriter(file);
  const gzip = gzipper(MEMBER_BYTES);
  using taken = members.take();
  const member = taken.memory;
  let used = 0;
  const flush = (): void => {
    writer.write(gzip(member.subarray(0, used)), writer.sizeBytes);
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

import type { TarEntry } from '@gantry/engine/layers/tar/tar-header.ts';
import { TarReader } from '@gantry/engine/layers/tar/tar-reader.ts';

export type Listed = TarEntry & { content: Buffer };

/** The entries of an archive by their paths, in its order. Throws for a damaged or truncated one. */
export function tarList(archive: Buffer): Map<string, Listed> {
  const entries = new Map<string, Listed>();
  let current: Listed | undefined;
  const reader = new TarReader({
    begin: (entry) => {
      current = { ...entry, content: Buffer.alloc(Math.min(entry.sizeBytes, 2 ** 20)) };
      entries.set(entry.path, current);
    },
    data: (chunk, position) => void chunk.copy(current!.content, position),
    finish: () => undefined,
  });
  reader.push(archive);
  if (!archive.subarray(-1024).every((byte) => byte === 0)) throw new Error('the archive has no end mark');
  reader.end();
  return entries;
}

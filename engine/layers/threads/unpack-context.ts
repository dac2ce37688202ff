import { LayerExtractor } from '../tar/extract.ts';
import { TarReader, type ArchiveLimits } from '../tar/tar-reader.ts';
import type { ContextEntry } from './archive-messages.ts';
import { decompressed } from './compression.ts';
import { ContextSums } from './context-sums.ts';

/** Extracts the context of a build; nothing in it removes anything, whatever it is called. */
export async function unpackContext(
  stream: AsyncIterable<Buffer>,
  directory: string,
  limits: ArchiveLimits,
): Promise<ContextEntry[]> {
  using extractor = new LayerExtractor(directory, [], { hasMarks: false });
  const sums = new ContextSums(extractor);
  const reader = new TarReader(sums, limits);
  for await (const chunk of decompressed(stream)) reader.push(chunk);
  reader.end();
  extractor.complete();
  return sums.entries;
}

import { closeSync, openSync, writeSync } from 'node:fs';

import { LayerExtractor } from '../tar/extract.ts';
import { TarReader, type ArchiveLimits } from '../tar/tar-reader.ts';
import type { ContextEntry } from './archive-messages.ts';
import { decompressed } from './compression.ts';
import { ContextSums } from './context-sums.ts';
import { chunksOf } from './plain-archive.ts';

/**
 * Writes the plain archive of a context into a new file, and lists its entries: a build with all steps in the cache
 * needs none of its files.
 */
export async function spoolContext(
  stream: AsyncIterable<Buffer>,
  file: string,
  limits: ArchiveLimits,
): Promise<ContextEntry[]> {
  const sums = new ContextSums();
  const reader = new TarReader(sums, limits);
  const push = (chunk: Buffer): void => reader.push(chunk);
  const fd = openSync(file, 'wx', 0o600);
  try {
    for await (const chunk of decompressed(stream)) {
      for (let written = 0; written < chunk.length;) written += writeSync(fd, chunk, written);
      sums.through(chunk, push);
    }
  } finally {
    closeSync(fd);
  }
  reader.end();
  return sums.entries;
}

/** Extracts such a file; names such as `.wh.x` have no special meaning in it. */
export async function extractContext(file: string, directory: string, limits: ArchiveLimits): Promise<undefined> {
  using extractor = new LayerExtractor(directory, [], { hasMarks: false });
  const reader = new TarReader(extractor, limits);
  const fd = openSync(file, 'r');
  try {
    for await (const chunk of chunksOf(fd)) reader.push(chunk);
  } finally {
    closeSync(fd);
  }
  reader.end();
  extractor.complete();
}

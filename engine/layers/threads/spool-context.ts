import { closeSync, openSync, writeSync } from 'node:fs';

import { readable } from '../../host/files/openat.ts';
import { EntryPlaces } from '../tar/entry-places.ts';
import { LayerExtractor } from '../tar/extract.ts';
import { TarReader, type ArchiveLimits, type TarSink } from '../tar/tar-reader.ts';
import type { ContextEntry, Work } from './archive-messages.ts';
import { decompressed } from './compression.ts';
import { ContextSums } from './context-sums.ts';
import { chunksOf } from './plain-archive.ts';

type Extraction = Extract<Work, { kind: 'extractContext' }>;

/** Entries go to the daemon in groups of so many, so that this thread does not keep those of a large context. */
const GROUP = 256;

/**
 * Writes the plain archive of a context into a new file, and tells its entries: a build with all steps in the cache
 * needs none of its files.
 */
export async function spoolContext(
  stream: AsyncIterable<Buffer>,
  file: string,
  limits: ArchiveLimits,
  tell: (entries: ContextEntry[]) => void,
): Promise<undefined> {
  let group: ContextEntry[] = [];
  const sums = new ContextSums((entry) => {
    group.push(entry);
    if (group.length < GROUP) return;
    tell(group);
    group = [];
  });
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
  tell(group);
}

/**
 * Extracts such a file, but the entries at the paths `without`; names such as `.wh.x` have no special meaning in it.
 */
export async function extractContext({ file, directory, without, limits }: Extraction): Promise<undefined> {
  using extractor = new LayerExtractor(directory, { hasMarks: false });
  const reader = new TarReader(without.length === 0 ? extractor : leaving(new Set(without), extractor), limits);
  const fd = openSync(file, 'r');
  try {
    for await (const chunk of chunksOf(fd)) reader.push(chunk);
  } finally {
    closeSync(fd);
  }
  reader.end();
  extractor.complete();
}

function leaving(without: ReadonlySet<string>, sink: TarSink): TarSink {
  const places = new EntryPlaces();
  let isLeft = false;
  return {
    begin(entry) {
      isLeft = without.has(readable(places.next(entry)));
      if (!isLeft) sink.begin(entry);
    },
    data(chunk, position) {
      if (!isLeft) sink.data(chunk, position);
    },
    finish() {
      if (!isLeft) sink.finish();
    },
  };
}

import { closeSync, openSync, writeSync } from 'node:fs';

import { describeBeyond } from '../../host/users/id-map.ts';
import { ownIds } from '../../host/users/own-ids.ts';
import { EntryPlaces } from '../tar/entry-places.ts';
import { LayerExtractor } from '../tar/extract.ts';
import { TarReader, type TarSink } from '../tar/tar-reader.ts';
import type { Work } from './archive-messages.ts';
import { ContextSums } from './context-sums.ts';
import type { EntryGroups } from './entry-groups.ts';
import { chunksOf } from './plain-archive.ts';

type Extraction = Extract<Work, { kind: 'extractContext' }>;

/**
 * Writes the plain archive of a context, which comes in `chunks`, into a file, and tells its entries: a build with all
 * steps in the cache needs none of its files.
 */
export async function spoolContext(
  chunks: AsyncIterable<Buffer>,
  { file, behind, limits }: Extract<Work, { kind: 'spoolContext' }>,
  groups: EntryGroups,
): Promise<undefined> {
  const sums = new ContextSums((entry) => groups.add(entry), behind);
  const reader = new TarReader(sums, limits);
  const push = (chunk: Buffer): void => reader.push(chunk);
  const fd = openSync(file, behind === 0 ? 'wx' : 'r+', 0o600);
  let end = behind;
  try {
    for await (const chunk of chunks) {
      for (let written = 0; written < chunk.length;)
        written += writeSync(fd, chunk, written, chunk.length - written, end + written);
      end += chunk.length;
      sums.through(chunk, push);
      await groups.ready();
    }
  } finally {
    closeSync(fd);
  }
  reader.end();
  groups.flush();
}

/**
 * Extracts such a file, but the entries whose bits are set in `without`; names such as `.wh.x` have no special meaning in it.
 * `check` is called for each chunk, and may throw.
 */
export async function extractContext(
  { file, directory, without, limits }: Extraction,
  check: () => void,
): Promise<undefined> {
  using extractor = new LayerExtractor(directory, { hasMarks: false });
  const sink = withinOwnIds(extractor);
  const reader = new TarReader(without === undefined ? sink : leaving(without, sink), limits);
  const fd = openSync(file, 'r');
  try {
    for await (const chunk of chunksOf(fd)) {
      check();
      reader.push(chunk);
    }
  } finally {
    closeSync(fd);
  }
  reader.end();
  extractor.complete();
}

/** No step sees the owner of a file in a context: one that the engine of an ordinary user cannot give becomes root. */
function withinOwnIds(sink: TarSink): TarSink {
  if (ownIds === undefined) return sink;
  return {
    begin: (entry) => sink.begin(describeBeyond(ownIds, entry) === undefined ? entry : { ...entry, uid: 0, gid: 0 }),
    data: (chunk, position) => sink.data(chunk, position),
    finish: () => sink.finish(),
  };
}

function leaving(without: Uint8Array, sink: TarSink): TarSink {
  const places = new EntryPlaces();
  let next = 0;
  let isLeft = false;
  return {
    begin(entry) {
      const hasPlace = places.next(entry) !== '';
      isLeft = hasPlace && ((without[next >> 3] ?? 0) & (1 << (next & 7))) !== 0;
      if (hasPlace) next += 1;
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

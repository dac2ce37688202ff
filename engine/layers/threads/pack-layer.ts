import { createHash } from 'node:crypto';
import { closeSync, fstatSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

import { holdAt } from '../../host/files/held-files.ts';
import { setTimesAt, type BytePath } from '../../host/files/openat.ts';
import { ALL, LayerRules } from '../pack/layer-rules.ts';
import { pack } from '../pack/pack.ts';
import { SkeletonAttempt } from '../skeletons/attempt.ts';
import { WHITEOUT } from '../tar/extract.ts';
import { splitPath } from '../tar/extracted-folders.ts';
import type { TarEntry } from '../tar/tar-header.ts';
import { TarReader, type TarSink } from '../tar/tar-reader.ts';
import type { Extracted, Received, Work } from './archive-messages.ts';
import { FileWriter } from './file-writer.ts';

const CHUNK_BYTES = 256 * 1024;

/** Writes the changes of a writable layer as an archive into a new file. `check` is called for each chunk, and may throw. */
export async function packLayer(work: Extract<Work, { kind: 'packLayer' }>, check: () => void): Promise<Received> {
  using writer = new FileWriter(work.file);
  const rules = work.mountPoints === 'none' ? ALL : new LayerRules(work.lower, work.mountPoints);
  await eachChunk({ upper: work.upper, rules, check }, (chunk) => writer.write(chunk, writer.sizeBytes));
  return { digest: writer.digest(), sizeBytes: writer.sizeBytes };
}

/** Like `packLayer`, for a folder that becomes that of a layer: without the archive, but with its skeleton and its times. */
export async function describeLayer(
  { upper, skeleton, limits }: Extract<Work, { kind: 'describeLayer' }>,
  check: () => void,
): Promise<Extracted> {
  const sizes = new Sizes();
  const hash = createHash('sha256');
  using attempt = new SkeletonAttempt(sizes, skeleton);
  const reader = new TarReader(attempt.recorder, limits);
  const push = (chunk: Buffer): void => reader.push(chunk);
  let archiveBytes = 0;
  await eachChunk({ upper, rules: ALL, check, packed: cutTime }, (chunk) => {
    archiveBytes += chunk.length;
    hash.update(chunk);
    attempt.recorder.through(chunk, push);
  });
  reader.end();
  const diffId = `sha256:${hash.digest('hex')}`;
  const archive = { folder: upper, digest: diffId, bytes: archiveBytes, isPlain: true };
  const hasSkeleton = (await attempt.gives(archive)) && !sizes.hasMarks;
  return { diffId, sizeBytes: sizes.bytes, archiveBytes, hasSkeleton };
}

/** Archives have whole seconds: the files of a layer are everywhere those of its archive. */
function cutTime(held: number, folder: number, name: BytePath): void {
  const { mtimeMs } = fstatSync(held);
  if (mtimeMs % 1000 !== 0) setTimesAt(folder, name, { seconds: Math.floor(mtimeMs / 1000), nanoseconds: 0 });
}

type Packed = Readonly<{ upper: string; rules: typeof ALL; check: () => void; packed?: typeof cutTime }>;

async function eachChunk({ upper, rules, check, packed }: Packed, take: (chunk: Buffer) => void): Promise<void> {
  using held = new DisposableStack();
  const root = held.adopt(holdAt(-1, Buffer.from(upper).toString('latin1')), closeSync);
  const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES); // taken before the next chunk is asked for
  for (const chunk of pack({ held: root, name: undefined }, () => buffer, { rules, packed })) {
    take(chunk);
    await setImmediate(); // yields to other work of this thread
    check();
  }
}

/** The size of a layer's files, as its extraction would count it. */
class Sizes implements TarSink {
  bytes = 0;
  /** Names of marks: also an ordinary file with such a name is one for those who extract the archive. */
  hasMarks = false;

  begin({ path, type, sizeBytes, linkPath }: TarEntry): void {
    if (splitPath(path)[1].startsWith(WHITEOUT)) this.hasMarks = true;
    if (type === 'file') this.bytes += sizeBytes;
    if (type === 'symlink') this.bytes += linkPath.length;
  }

  data(): void {
    // Recorded by the skeleton.
  }

  finish(): void {
    // Nothing is open.
  }
}

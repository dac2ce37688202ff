import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';

import type { Blobs } from '../../layers/blobs.ts';
import type { Layer } from '../../layers/records.ts';
import type { Archives } from '../../layers/threads/archives.ts';
import { compressionOf, decompressed } from '../../layers/threads/compression.ts';
import type { Clock } from '../../lib/clock.ts';
import { DOCKER_LAYER, type Descriptor } from '../../registry/manifests.ts';
import type { PushTarget } from '../../registry/upload.ts';
import { hostAndPath } from '../reference.ts';
import type { LayerSource, LayerSources } from './layer-sources.ts';
import { retrying, type LayerLines } from './transfer-lines.ts';

export type Needs = { archives: Archives; blobs: Blobs; clock: Clock; layerSources: LayerSources };

type Options = {
  target: PushTarget;
  /** With its host. */
  repository: string;
  lines: LayerLines;
  signal: AbortSignal;
};

const READ_BYTES = 1024 * 1024;
/** Half the time of level 6, for 3 % more bytes of a program. The same at each push, so that the registry knows the blob. */
const GZIP_LEVEL = 4;

/** Sees to it that a repository has a layer, with the least work; what the manifest says about it. */
export async function pushLayer(engine: Needs, layer: Layer, options: Options): Promise<Descriptor> {
  const { repository, lines } = options;
  const known = engine.layerSources.of(layer.diffId);
  const present = await presentOf(engine, layer, known, options);
  const pushed = present ?? (await mounted(known, options)) ?? (await uploaded(engine, layer, options));
  engine.layerSources.remember(layer.diffId, { repository, digest: pushed.digest, sizeBytes: pushed.size });
  lines.say(pushed.how);
  return { mediaType: DOCKER_LAYER, size: pushed.size, digest: pushed.digest };
}

type Pushed = { digest: string; size: number; how: string };

/** A blob with this content that the repository has: one that went there before, or the one that we received. */
async function presentOf(
  { blobs }: Needs,
  layer: Layer,
  known: readonly LayerSource[],
  { target, repository, signal }: Options,
): Promise<Pushed | undefined> {
  const digests = known.filter((source) => source.repository === repository).map(({ digest }) => digest);
  if ((await compressionOf(blobs.path(layer.blob))) === 'gzip') digests.push(layer.blob);
  for (const digest of new Set(digests)) {
    const size = await target.sizeOf(digest, signal);
    if (size !== undefined) return { digest, size, how: 'Layer already exists' };
  }
  return undefined;
}

/** Taken over from another repository of the same registry. */
async function mounted(
  known: readonly LayerSource[],
  { target, repository, signal }: Options,
): Promise<Pushed | undefined> {
  const { host } = hostAndPath(repository);
  for (const { repository: other, digest, sizeBytes } of known) {
    const from = hostAndPath(other);
    if (from.host !== host || from.path === target.path) continue;
    if (await target.mount(digest, from.path, signal))
      return { digest, size: sizeBytes, how: `Mounted from ${from.path}` };
  }
  return undefined;
}

/** As it was received, if that is gzip, else compressed. */
async function uploaded(engine: Needs, layer: Layer, { target, lines, signal }: Options): Promise<Pushed> {
  await using arrivals = engine.blobs.arrivals();
  const { file, digest, size } = await compressed(engine, layer, arrivals.path);
  signal.throwIfAborted();
  if (digest !== layer.blob && (await target.sizeOf(digest, signal)) !== undefined) {
    return { digest, size, how: 'Layer already exists' };
  }
  lines.total = size;
  await target.upload(
    file,
    { digest, size },
    {
      clock: engine.clock,
      signal,
      onProgress: (bytes) => lines.bytes('Pushing', bytes),
      onRetry: (seconds) => lines.say(retrying(seconds)),
    },
  );
  return { digest, size, how: 'Pushed' };
}

async function compressed(
  { archives, blobs }: Needs,
  { blob }: Layer,
  folder: string,
): Promise<{ file: string; digest: string; size: number }> {
  const path = blobs.path(blob);
  if ((await compressionOf(path)) === 'gzip') return { file: path, digest: blob, size: (await stat(path)).size };
  const file = join(folder, 'layer.tar.gz');
  const plain = copies(decompressed(createReadStream(path, { highWaterMark: READ_BYTES })));
  const source = Readable.from(plain, { objectMode: false });
  const zipped = createGzip({ chunkSize: READ_BYTES, level: GZIP_LEVEL });
  source.once('error', (error) => zipped.destroy(error));
  const { digest, sizeBytes } = await archives.receive(source.pipe(zipped), file);
  return { file, digest, size: sizeBytes };
}

/** The decompressor reuses its memory. */
async function* copies(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of source) yield Buffer.from(piece);
}

import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Engine } from '../../../engine.ts';
import { archiveSource } from '../../../layers/archive-source.ts';
import type { Layer } from '../../../layers/records.ts';
import type { ArchiveSource } from '../../../layers/threads/archive-messages.ts';
import { compressionOf } from '../../../layers/threads/compression.ts';
import { EngineError } from '../../../lib/errors.ts';
import { DOCKER_LAYER, type Descriptor } from '../../../registry/manifests.ts';
import { GrowingFile } from '../../../registry/upload/growing-file.ts';
import type { PushTarget } from '../../../registry/upload/push-target.ts';
import { hostAndPath } from '../../names/reference.ts';
import type { Slots } from '../slots.ts';
import { retrying, type LayerLines } from '../transfer-lines.ts';
import type { LayerSource } from './layer-sources.ts';

export type Needs = Pick<Engine, 'archives' | 'blobs' | 'clock' | 'layers' | 'layerSources'>;

export type Options = {
  target: PushTarget;
  /** Layers that are compressed at once: each takes memory, and a processor. */
  compressions: Slots;
  /** With its host. */
  repository: string;
  lines: LayerLines;
  signal: AbortSignal;
};

/** Makes sure that a repository has a layer, with the least work; returns the layer's entry in the manifest. */
export async function pushLayer(engine: Needs, layer: Layer, options: Options): Promise<Descriptor> {
  const { repository, lines } = options;
  const source = archiveSource(engine, layer);
  if (source === undefined) throw new EngineError('failed', `the layer ${layer.diffId} was lost meanwhile`);
  const known = engine.layerSources.of(layer.diffId);
  const isGzip = source.kind === 'whole' && (await compressionOf(source.file)) === 'gzip';
  const digests = known.filter((each) => each.repository === repository).map(({ digest }) => digest);
  const present = await presentOf(isGzip ? [...digests, layer.blob] : digests, options);
  const pushed =
    present ??
    (await mountFromRepository(known, options)) ??
    (isGzip ? await uploadedAsIs(engine, layer, options) : await uploadCompressed(engine, source, options));
  engine.layerSources.remember(layer.diffId, { repository, digest: pushed.digest, sizeBytes: pushed.size });
  lines.say(pushed.how);
  return { mediaType: DOCKER_LAYER, size: pushed.size, digest: pushed.digest };
}

/**
 * Like `pushLayer`, with exactly the bytes that a manifest names. Throws `failed` if neither this machine nor the registry has
 * them.
 */
export async function pushExactLayer(
  engine: Needs,
  { layer, descriptor }: { layer: Layer; descriptor: Descriptor },
  options: Options,
): Promise<void> {
  const { repository, lines } = options;
  const { digest, size } = descriptor;
  const known = engine.layerSources.of(layer.diffId).filter((each) => each.digest === digest);
  const pushed =
    (await presentOf([digest], options)) ??
    (await mountFromRepository(known, options)) ??
    (await uploadedExactly(engine, layer, descriptor, options));
  engine.layerSources.remember(layer.diffId, { repository, digest, sizeBytes: size });
  lines.say(pushed.how);
}

async function uploadedExactly(
  engine: Needs,
  layer: Layer,
  { digest, size }: Descriptor,
  options: Options,
): Promise<Pushed> {
  const source = archiveSource(engine, layer);
  if (layer.blob === digest && source?.kind === 'whole') return await uploadedAsIs(engine, layer, options);
  if (layer.diffId !== digest || source === undefined) {
    throw new EngineError('failed', `missing content: the layer ${digest} is here in another form`);
  }
  await using arrivals = engine.blobs.arrivals();
  const path = join(arrivals.path, 'layer.tar');
  // One piece at a time: its memory goes back to the thread with the question for the next.
  await writeFile(path, engine.archives.read(source));
  await upload(engine, new GrowingFile(path, { digest, size }), options);
  return { digest, size, how: 'Pushed' };
}

/** Whether this machine has a layer with exactly these bytes. */
export function hasExactly(engine: Needs, layer: Layer, digest: string): boolean {
  if (layer.diffId === digest) return archiveSource(engine, layer) !== undefined;
  return layer.blob === digest && engine.blobs.isWhole(digest);
}

type Pushed = { digest: string; size: number; how: string };

/** A blob with this content in the repository: an earlier upload, or the one that we received. */
async function presentOf(digests: readonly string[], options: Options): Promise<Pushed | undefined> {
  for (const digest of new Set(digests)) {
    const size = await options.target.sizeOf(digest, waitingOf(options));
    if (size !== undefined) return { digest, size, how: 'Layer already exists' };
  }
  return undefined;
}

/** Mounted from another repository of the same registry. */
async function mountFromRepository(known: readonly LayerSource[], options: Options): Promise<Pushed | undefined> {
  const { target, repository } = options;
  const { host } = hostAndPath(repository);
  for (const { repository: other, digest, sizeBytes } of known) {
    const from = hostAndPath(other);
    if (from.host !== host || from.path === target.path) continue;
    if (await target.mount(digest, from.path, waitingOf(options)))
      return { digest, size: sizeBytes, how: `Mounted from ${from.path}` };
  }
  return undefined;
}

/** As it was received, so that its digest stays. */
async function uploadedAsIs(engine: Needs, { blob }: Layer, options: Options): Promise<Pushed> {
  const file = engine.blobs.path(blob);
  const { size } = await stat(file);
  await upload(engine, new GrowingFile(file, { digest: blob, size }), options);
  return { digest: blob, size, how: 'Pushed' };
}

/** Compressed on the way: the registry gets the compressed part while a thread compresses the rest. */
async function uploadCompressed(engine: Needs, source: ArchiveSource, options: Options): Promise<Pushed> {
  await using arrivals = engine.blobs.arrivals();
  const path = join(arrivals.path, 'layer.tar.gz');
  const file = new GrowingFile(path);
  const turn = await options.compressions.take(options.signal);
  const work = engine.archives
    .compress(source, path, (bytes) => file.grow(bytes))
    .then(
      ({ digest, sizeBytes }) => file.end({ digest, size: sizeBytes }),
      (error: unknown) => file.fail(error),
    )
    .finally(() => turn[Symbol.dispose]());
  try {
    await upload(engine, file, options);
    return { ...(await file.whole), how: 'Pushed' };
  } finally {
    await work; // it writes into the folder that is removed next
  }
}

async function upload({ clock }: Needs, file: GrowingFile, options: Options): Promise<void> {
  const { target, lines } = options;
  file.whole.then(({ size }) => (lines.total = size)).catch(() => undefined); // the upload reports the error
  await target.upload(file, {
    clock,
    onProgress: (bytes) => lines.bytes('Pushing', bytes),
    ...waitingOf(options),
  });
}

function waitingOf({ lines, signal }: Options): { signal: AbortSignal; onRetry: (seconds: number) => void } {
  return { signal, onRetry: (seconds) => lines.say(retrying(seconds)) };
}

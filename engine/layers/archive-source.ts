import type { Engine } from '../engine.ts';
import type { Layer } from './records.ts';
import type { ArchiveSource } from './threads/archive-messages.ts';

type Needs = Pick<Engine, 'blobs' | 'layers'>;

/** The source of a layer's archive; undefined if the archive, or a file to rebuild it, is lost. */
export function archiveSource({ blobs, layers }: Needs, layer: Layer): ArchiveSource | undefined {
  const digest = layer.blob;
  if (blobs.isWhole(digest)) return { kind: 'whole', file: blobs.path(digest) };
  if (!blobs.has(digest) || !layers.folders.isWhole(layer)) return undefined;
  return { kind: 'skeleton', file: blobs.skeletonPath(digest), folder: layers.folders.pathOf(layer), digest };
}

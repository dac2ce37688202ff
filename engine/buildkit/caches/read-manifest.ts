import { OCI_LAYER, type Descriptor, type ImageManifest } from '../../registry/manifests.ts';
import type { ReadStep } from './cache-config.ts';

/** A layer of a cache: the blob that has it, and the digest of its plain archive. */
export type CachedLayer = Readonly<{ descriptor: Descriptor; diffId: string }>;

/** The layer of a step in a cache with a manifest of its own; undefined: none that a manifest lists. */
export function layerOfCache({ layers }: ImageManifest, { layer }: ReadStep): CachedLayer | undefined {
  const descriptor = layers.find(({ digest }) => digest === layer?.blob);
  const diffId = layer?.annotations?.diffID;
  return descriptor === undefined || diffId === undefined ? undefined : { descriptor, diffId };
}

/** That of a step in a cache within an image, whose layers it names by their plain digests. */
export function layerOfImage(
  { layers }: ImageManifest,
  diffIds: readonly string[],
  { layer }: ReadStep,
): CachedLayer | undefined {
  const diffId = layer?.blob ?? '';
  const descriptor = layers[diffIds.indexOf(diffId)];
  return descriptor === undefined ? undefined : { descriptor, diffId };
}

export const CACHE_LAYER = `${OCI_LAYER}+gzip`;

import type { Engine } from '../../engine.ts';
import { isIndex, readManifest, type Descriptor, type IndexEntry } from '../../registry/manifests.ts';
import type { Image } from '../store.ts';
import { attestedBy, isPseudoImage } from './attestation.ts';
import { descriptorOf, type ImageDocument } from './documents.ts';
import { plainManifest } from './plain-manifest.ts';

type Needs = Pick<Engine, 'blobs' | 'images' | 'imageUsage' | 'layers'>;

type Platform = Readonly<{ os: string; architecture: string; variant: string }>;

/** One manifest of an image: that of a platform, or an attestation. */
export type ManifestSummary = Readonly<{
  entry: IndexEntry;
  /** All of its parts are here. */
  isAvailable: boolean;
  /** Bytes of the manifest and its parts in their registry's form. */
  contentBytes: number;
}> &
  Readonly<
    | { kind: 'image'; platform: Platform; unpackedBytes: number; containers: readonly string[] }
    | { kind: 'attestation'; attests: string }
    | { kind: 'unknown' }
  >;

/** The document behind an image's name; for an image without one, such as a loaded one, the manifest that describes it. */
export function targetDescriptor(
  engine: Pick<Engine, 'images' | 'layers'>,
  image: Image,
  target: string | undefined,
): Descriptor | undefined {
  const document = target === undefined ? undefined : engine.images.documents.get(target);
  return document === undefined ? plainManifest(engine, image) : descriptorOf(document);
}

/** The manifests behind a document, or else the one of an image without a document. */
export function manifestSummaries(engine: Needs, image: Image, target: string | undefined): ManifestSummary[] {
  const { documents } = engine.images;
  const entries = target === undefined ? [] : documents.manifestsBelow(target);
  if (entries.length > 0) return entries.map((entry) => summaryOf(engine, entry));
  const plain = plainManifest(engine, image);
  return plain === undefined ? [] : [imageSummaryOf(engine, plain, image, contentBytes(image, plain, engine))];
}

function summaryOf(engine: Needs, entry: IndexEntry): ManifestSummary {
  const { images } = engine;
  const document = images.documents.get(entry.digest);
  const attests = attestedBy(entry);
  if (attests !== undefined || isPseudoImage(entry)) {
    const sizes = { entry, isAvailable: isWhole(engine, document), contentBytes: statedBytes(document) };
    return attests === undefined ? { ...sizes, kind: 'unknown' } : { ...sizes, kind: 'attestation', attests };
  }
  const image = document?.imageId === undefined ? undefined : images.get(document.imageId);
  return imageSummaryOf(engine, entry, image, statedBytes(document));
}

function imageSummaryOf(
  engine: Needs,
  entry: IndexEntry,
  image: Image | undefined,
  contentBytes: number,
): ManifestSummary {
  const { architecture = '', os = '', variant } = entry.platform ?? image ?? {};
  return {
    entry,
    kind: 'image',
    isAvailable: image !== undefined && hasLayers(engine, image),
    contentBytes: image === undefined ? 0 : contentBytes,
    platform: { architecture, os, variant: variant ?? '' },
    unpackedBytes: image?.sizeBytes ?? 0,
    containers: image === undefined ? [] : engine.imageUsage.usedBy(image.id).map(({ id }) => id),
  };
}

function hasLayers({ blobs, layers }: Needs, image: Image): boolean {
  return image.layers.every((chainId) => {
    const layer = layers.get(chainId);
    return layer !== undefined && layers.folders.isWhole(layer) && blobs.has(layer.blob);
  });
}

function isWhole({ images }: Needs, document: ImageDocument | undefined): boolean {
  if (document === undefined) return false;
  return images.documents.partsOf(document.digest).every((digest) => images.documents.get(digest) !== undefined);
}

function statedBytes(document: ImageDocument | undefined): number {
  if (document === undefined || isIndex(document.mediaType)) return 0;
  const { config, layers } = readManifest(document.text, document.digest);
  return [descriptorOf(document), config, ...layers].reduce((bytes, { size }) => bytes + size, 0);
}

function contentBytes(image: Image, manifest: Descriptor, { images, layers }: Needs): number {
  const archives = image.layers.map((chainId) => layers.get(chainId)?.archiveBytes ?? 0);
  return archives.reduce((sum, bytes) => sum + bytes, manifest.size + Buffer.byteLength(images.jsonOf(image.id)));
}

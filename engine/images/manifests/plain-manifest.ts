import type { Engine } from '../../engine.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { OCI_CONFIG, OCI_LAYER, OCI_MANIFEST, type Descriptor } from '../../registry/manifests.ts';
import type { Image } from '../store.ts';
import { descriptorOf, type ImageDocument } from './documents.ts';

type Needs = Pick<Engine, 'images' | 'layers'>;

const known = new WeakMap<Image, ImageDocument>();

/**
 * The manifest of an image that came without one, by its plain layers; undefined where an older daemon did not record
 * their sizes.
 */
export function plainDocument({ images, layers }: Needs, image: Image): ImageDocument | undefined {
  const cached = known.get(image);
  if (cached !== undefined) return cached;
  const archives = image.layers.flatMap((chainId) => layers.get(chainId) ?? []);
  if (archives.length < image.layers.length || archives.some((layer) => layer.archiveBytes === undefined))
    return undefined;
  const json = images.jsonOf(image.id);
  const text = JSON.stringify({
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: { mediaType: OCI_CONFIG, digest: image.id, size: Buffer.byteLength(json) },
    layers: archives.map(({ diffId, archiveBytes }) => ({ mediaType: OCI_LAYER, digest: diffId, size: archiveBytes! })),
  });
  const document = { mediaType: OCI_MANIFEST, digest: sha256(text), text, imageId: image.id };
  known.set(image, document);
  return document;
}

/** The descriptor of that manifest. */
export function plainManifest(engine: Needs, image: Image): Required<Descriptor> | undefined {
  const document = plainDocument(engine, image);
  return document && descriptorOf(document);
}

import type { Engine } from '../../engine.ts';
import type { ImageDocument } from '../manifests/documents.ts';
import type { Image } from '../store.ts';

/** A document as it was at the start of a push; the digests in it, and the image that a manifest describes. */
export type PushedDocument = Readonly<{ document: ImageDocument; parts: readonly string[]; image: Image | undefined }>;

/** The documents at and below the given digests, by their digests: they may be removed during the push. */
export function pushedDocuments(
  { images }: Pick<Engine, 'images'>,
  digests: readonly string[],
): Map<string, PushedDocument> {
  const found = new Map<string, PushedDocument>();
  const left = [...digests];
  for (const digest of left) {
    const document = images.documents.get(digest);
    if (document === undefined || found.has(digest)) continue;
    const parts = images.documents.partsOf(digest);
    found.set(digest, { document, parts, image: images.get(document.imageId ?? '') });
    for (const part of parts) left.push(part);
  }
  return found;
}

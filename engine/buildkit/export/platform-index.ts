import type { Engine } from '../../engine.ts';
import { descriptorOf, type ImageDocument } from '../../images/manifests/documents.ts';
import { plainDocument } from '../../images/manifests/plain-manifest.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { EngineError } from '../../lib/errors.ts';
import { OCI_INDEX } from '../../registry/manifests.ts';
import type { Built } from '../frontend/build.ts';

type Needs = Pick<Engine, 'images' | 'layers'>;

/** The index of results for several platforms, with the documents that it needs. */
export function indexOf(
  engine: Needs,
  built: readonly Built[],
): { digest: string; documents: readonly ImageDocument[] } {
  const manifests = built.map(({ image, platform: { os, architecture, variant } }) => {
    const document = plainDocument(engine, image);
    if (document === undefined)
      throw new EngineError('failed', `the layers of ${image.id} have no known size: pull its base image again`);
    const platform = { architecture, os, ...(variant !== '' && { variant }) };
    return { document, entry: { ...descriptorOf(document), platform } };
  });
  const text = JSON.stringify({
    schemaVersion: 2,
    mediaType: OCI_INDEX,
    manifests: manifests.map(({ entry }) => entry),
  });
  const index = { digest: sha256(text), mediaType: OCI_INDEX, text };
  return { digest: index.digest, documents: [...manifests.map(({ document }) => document), index] };
}

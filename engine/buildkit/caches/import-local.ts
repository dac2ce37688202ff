import { CACHE_CONFIG, OCI_MANIFEST, parseManifest } from '../../registry/manifests.ts';
import type { ClientContent } from '../session/client-content.ts';
import { parseCache } from './cache-config.ts';
import type { Found } from './import.ts';
import { layerOfCache } from './read-manifest.ts';

/** Bytes of a manifest, and of the description of a cache. */
const [MAX_MANIFEST_BYTES, MAX_CONFIG_BYTES] = [4 * 1024 * 1024, 8 * 1024 * 1024];

/** The steps of a cache in a folder of the client. `digest`: of its manifest. One of another kind has none for us. */
export async function stepsOfClient(content: ClientContent, digest: string): Promise<Found> {
  const bytes = await content.document(digest, MAX_MANIFEST_BYTES);
  const manifest = parseManifest(bytes, OCI_MANIFEST, { expected: digest, wanted: 'cache' });
  if (!('image' in manifest) || manifest.image.config.mediaType !== CACHE_CONFIG)
    return { steps: [], layerOf: () => undefined };
  const { image } = manifest;
  const config = await content.document(image.config.digest, MAX_CONFIG_BYTES);
  return { steps: parseCache(config.toString()), layerOf: (step) => layerOfCache(image, step) };
}

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { isIndex, readManifest, type Descriptor } from '../../registry/manifests.ts';
import type { ImageDocument } from '../manifests/documents.ts';
import { checkArchives } from '../missing-files.ts';
import type { Image } from '../store.ts';
import { hasExactly, pushExactLayer, type Needs as NeedsOfLayer } from './layers/push-layer.ts';
import { pushLayers, type Push } from './layers/push-layers.ts';

type Needs = NeedsOfLayer & Pick<Engine, 'config' | 'images'>;

/** Pushes an index with everything below it, under a tag or a digest; documents follow their parts. */
export async function pushIndex(engine: Needs, document: ImageDocument, reference: string, push: Push): Promise<void> {
  for (const digest of new Set(push.documents.get(document.digest)?.parts)) {
    const { document: part, image } = push.documents.get(digest) ?? missing(digest);
    if (isIndex(part.mediaType)) await pushIndex(engine, part, digest, push);
    else if (image === undefined) await pushDocument(part, push);
    else {
      await pushManifest(engine, part, image, push);
      await push.target.putManifest(digest, Buffer.from(part.text), part.mediaType, push.signal);
    }
  }
  await push.target.putManifest(reference, Buffer.from(document.text), document.mediaType, push.signal);
}

/** Pushes the parts of an image's manifest, byte for byte as the manifest names them. */
export async function pushManifest(engine: Needs, document: ImageDocument, image: Image, push: Push): Promise<void> {
  const { target, jsons, signal } = push;
  checkArchives(engine, image);
  const descriptors = descriptorsOf(document, image);
  await pushLayers(engine, image, push, async (layer, options) => {
    await pushExactLayer(engine, { layer, descriptor: descriptors.get(layer.diffId)! }, options);
  });
  if ((await target.sizeOf(image.id, { signal })) === undefined) {
    await target.put(Buffer.from(jsons.get(image.id)!), image.id, signal);
  }
}

/** Whether this machine or the registry has all layers in the form that a manifest names. */
export async function hasExactLayers(
  engine: Needs,
  document: ImageDocument,
  image: Image,
  { target, signal }: Push,
): Promise<boolean> {
  const descriptors = descriptorsOf(document, image);
  for (const chainId of image.layers) {
    const layer = engine.layers.get(chainId);
    const { digest } = descriptors.get(layer?.diffId ?? '') ?? {};
    if (layer === undefined || digest === undefined) return false;
    if (!hasExactly(engine, layer, digest) && (await target.sizeOf(digest, { signal })) === undefined) return false;
  }
  return true;
}

/** An attestation: a manifest whose parts are documents too. */
async function pushDocument(document: ImageDocument, { documents, target, signal }: Push): Promise<void> {
  for (const digest of documents.get(document.digest)?.parts ?? []) {
    const { document: part } = documents.get(digest) ?? missing(digest);
    if ((await target.sizeOf(digest, { signal })) === undefined)
      await target.put(Buffer.from(part.text), digest, signal);
  }
  await target.putManifest(document.digest, Buffer.from(document.text), document.mediaType, signal);
}

function missing(digest: string): never {
  throw new EngineError('notFound', `content digest ${digest}: not found`);
}

/** The layers of a manifest by their plain digests. */
function descriptorsOf({ text, digest }: ImageDocument, { diffIds }: Image): Map<string, Descriptor> {
  const { layers } = readManifest(text, digest);
  return new Map(layers.map((descriptor, at) => [diffIds[at]!, descriptor]));
}

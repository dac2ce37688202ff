import type { Engine } from '../../engine.ts';
import { parseImage } from '../../images/configuration/image-json.ts';
import { checkPlatform, type Platform } from '../../images/configuration/platform.ts';
import type { Report } from '../../images/progress/progress.ts';
import type { Image } from '../../images/store.ts';
import { manifestFor } from '../../images/transfers/platform.ts';
import { parseBoundedJson } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';
import { OCI_INDEX, parseManifest } from '../../registry/manifests.ts';
import { bringLayer } from '../caches/bring-layer.ts';
import { ClientContent } from '../session/client-content.ts';
import type { Session } from '../session/session.ts';

/** Bytes of a manifest, and of a configuration. */
const [MAX_MANIFEST_BYTES, MAX_CONFIG_BYTES] = [4 * 1024 * 1024, 8 * 1024 * 1024];
/** The client's name of a layout, and the digest of its image. */
const ADDRESS = /^oci-layout:\/\/([^@]+)@(sha256:[0-9a-f]{64})$/;

type From = Readonly<{ session: Session; report: Report; signal: AbortSignal }>;

/** The image in an OCI layout of the client (`--build-context NAME=oci-layout://PATH`), brought here without a name. */
export async function layoutImage(
  engine: Engine,
  address: string,
  platform: Platform | undefined,
  { session, report, signal }: From,
): Promise<Image> {
  const [, store, digest] = ADDRESS.exec(address) ?? [];
  if (store === undefined || digest === undefined)
    throw new EngineError('invalid', `invalid OCI layout ${JSON.stringify(address)}: it needs a digest`);
  const content = new ClientContent(session, `oci:${store.replace(/:[^:/]*$/, '')}`, signal);
  const documents = {
    manifest: async (expected: string) =>
      parseManifest(await content.document(expected, MAX_MANIFEST_BYTES), OCI_INDEX, { expected }),
  };
  const { manifest } = await manifestFor(documents, await documents.manifest(digest), { platform, signal });
  if (!('config' in manifest)) throw new EngineError('invalid', `${address} is no OCI image`);
  const json = (await content.document(manifest.config.digest, MAX_CONFIG_BYTES)).toString();
  const image = parseImage(parseBoundedJson(json));
  checkPlatform(image, store, platform);
  if (image.diffIds.length !== manifest.layers.length)
    throw new EngineError('invalid', "layers from manifest don't match image configuration");
  using leases = new DisposableStack();
  let parent: string | undefined;
  for (const [index, descriptor] of manifest.layers.entries()) {
    const layer = { descriptor, diffId: image.diffIds[index]! };
    parent = (await bringLayer(engine, { content }, layer, { parent, leases, report, signal })).chainId;
  }
  return engine.images.insert(manifest.config.digest, json, () => undefined);
}

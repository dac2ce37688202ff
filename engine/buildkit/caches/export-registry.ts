import type { CredentialsByHost } from '../../builder/options.ts';
import type { Engine } from '../../engine.ts';
import { hostAndPath, parseReference, refuseAmbiguous, withDefaultTag } from '../../images/names/reference.ts';
import { pushLayer } from '../../images/transfers/layers/push-layer.ts';
import { Slots } from '../../images/transfers/slots.ts';
import { LayerLines } from '../../images/transfers/transfer-lines.ts';
import { EngineError } from '../../lib/errors.ts';
import { shortId } from '../../lib/ids.ts';
import { ANONYMOUS } from '../../registry/auth/credentials.ts';
import { withRegistry } from '../../registry/connection/session.ts';
import type { Descriptor } from '../../registry/manifests.ts';
import { PushTarget } from '../../registry/upload/push-target.ts';
import type { Blob } from '../export/packed-image.ts';
import type { Vertex } from '../progress/vertex.ts';
import type { CacheEntry } from './cache-options.ts';
import type { Target } from './export.ts';

type To = Readonly<{ entry: CacheEntry; credentials: CredentialsByHost; vertex: Vertex; signal: AbortSignal }>;

/** Pushes a cache under the name that the client gives. */
export async function exportToRegistry(
  engine: Engine,
  { entry, credentials, vertex, signal }: To,
  work: (target: Target) => Promise<Descriptor>,
): Promise<Descriptor> {
  const reference = withDefaultTag(parseReference(entry.attributes.get('ref')!));
  if (reference.digest !== undefined) throw new EngineError('invalid', 'the name of a cache cannot have a digest');
  refuseAmbiguous(reference);
  const { repository, tag } = reference;
  const { host, path } = hostAndPath(repository);
  const given = (await credentials.get(host)) ?? ANONYMOUS;
  const compressions = new Slots(1);
  return await withRegistry(engine, { host, credentials: given, useMirrors: false, signal }, async (session) => {
    const target = new PushTarget(session, path);
    return await work({
      putLayer: async (layer) => {
        const id = shortId(layer.diffId.replace('sha256:', ''));
        const lines = new LayerLines(vertex.report, engine.clock, id, layer.sizeBytes);
        return await pushLayer(engine, layer, { target, compressions, repository, lines, signal });
      },
      putConfig: async (blob) => {
        const { digest } = blob.descriptor;
        if ((await target.sizeOf(digest, { signal })) === undefined)
          await target.put(await bytesOf(blob), digest, signal);
      },
      putManifest: async (blob) =>
        await target.putManifest(tag!, await bytesOf(blob), blob.descriptor.mediaType!, signal),
    });
  });
}

async function bytesOf({ read }: Blob): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(read()));
}

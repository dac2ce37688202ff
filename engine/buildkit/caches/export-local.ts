import { buildFolder } from '../../builder/context/context.ts';
import type { Engine } from '../../engine.ts';
import type { Descriptor } from '../../registry/manifests.ts';
import { compressed, type Blob } from '../export/packed-image.ts';
import { ClientContent } from '../session/client-content.ts';
import type { Session } from '../session/session.ts';
import type { CacheEntry } from './cache-options.ts';
import type { Target } from './export.ts';

type To = Readonly<{ entry: CacheEntry; session: Session; signal: AbortSignal }>;

/** Writes a cache into a folder of the client, which names it in the folder's index itself. */
export async function exportToClient(
  engine: Engine,
  { entry, session, signal }: To,
  work: (target: Target) => Promise<Descriptor>,
): Promise<Descriptor> {
  const content = new ClientContent(session, `local:${entry.attributes.get('dest')!}`, signal);
  await using folder = await buildFolder(engine);
  const put = async (blob: Blob): Promise<void> => await content.write(blob);
  return await work({
    putLayer: async (layer) => {
      const blob = await compressed(engine, layer, folder.path, {
        isOci: true,
        isForced: true, // the manifest says gzip
        compression: { kind: 'gzip' },
      });
      await put(blob);
      return blob.descriptor;
    },
    putConfig: put,
    putManifest: put,
  });
}

import { RegistryError } from '../../registry/errors.ts';
import type { ImageManifest, IndexEntry, Manifest } from '../../registry/manifests.ts';
import type { OldManifest } from '../../registry/old-manifest.ts';
import type { Repository } from '../../registry/repository.ts';
import { fitsPlatform, HOST_PLATFORM, platformText, type Platform } from '../configuration/platform.ts';
import { isPseudoImage } from '../manifests/attestation.ts';
import { MAX_INDEX_DEPTH } from '../manifests/documents.ts';

type Wanted = Readonly<{ platform?: Platform | undefined; signal: AbortSignal }>;

/** The manifest of a platform, below all the indexes that lead to it. */
type Found = Readonly<{ manifest: ImageManifest | OldManifest; path: readonly Manifest[] }>;

/** The manifest of a platform, by default this machine's; indexes may be nested, to a limit. */
export async function manifestFor(
  repository: Pick<Repository, 'manifest'>,
  manifest: Manifest,
  wanted: Wanted,
  above: readonly Manifest[] = [],
): Promise<Found> {
  const path = [...above, manifest];
  if ('image' in manifest) return { manifest: manifest.image, path };
  if ('old' in manifest) return { manifest: manifest.old, path };
  if (above.some(({ digest }) => digest === manifest.digest)) {
    throw new RegistryError(`the index ${manifest.digest} contains itself`);
  }
  if (above.length === MAX_INDEX_DEPTH) throw new RegistryError(`indexes are nested deeper than ${MAX_INDEX_DEPTH}`);
  const entry = entryFor(manifest.index.manifests, wanted.platform ?? HOST_PLATFORM);
  const inner = await repository.manifest(entry.digest, wanted.signal);
  if (inner.bytes.length !== entry.size && !('old' in inner)) {
    throw new RegistryError(
      `the manifest ${entry.digest} has ${inner.bytes.length} bytes; its index says ${entry.size}`,
    );
  }
  return await manifestFor(repository, inner, wanted, path);
}

/** An entry of the platform; else the first one without any, which is tried. */
function entryFor(entries: readonly IndexEntry[], platform: Platform): IndexEntry {
  const images = entries.filter((entry) => !isPseudoImage(entry));
  const entry =
    images.find((each) => each.platform && fitsPlatform(platform, each.platform)) ??
    images.find((each) => !each.platform);
  if (entry !== undefined) return entry;
  throw new RegistryError(`no matching manifest for ${platformText(platform)} in the manifest list entries`);
}

import { RegistryError } from '../../registry/errors.ts';
import type { ImageManifest, IndexEntry, Manifest } from '../../registry/manifests.ts';
import type { OldManifest } from '../../registry/old-manifest.ts';
import type { Repository } from '../../registry/repository.ts';
import { goArchitecture } from '../configuration/architecture.ts';

const DEPTH = 4;

/** The manifest of this machine's platform; indexes may be nested, to a limit. */
export async function manifestForHost(
  repository: Repository,
  manifest: Manifest,
  signal: AbortSignal,
  seen: ReadonlySet<string> = new Set(),
): Promise<ImageManifest | OldManifest> {
  if ('image' in manifest) return manifest.image;
  if ('old' in manifest) return manifest.old;
  if (seen.has(manifest.digest)) throw new RegistryError(`the index ${manifest.digest} contains itself`);
  if (seen.size === DEPTH) throw new RegistryError(`indexes are nested deeper than ${DEPTH}`);
  const [entry] = manifest.index.manifests.filter(fitsHost);
  if (entry === undefined) {
    throw new RegistryError(`no matching manifest for linux/${goArchitecture()} in the manifest list entries`);
  }
  const inner = await repository.manifest(entry.digest, signal);
  return await manifestForHost(repository, inner, signal, new Set([...seen, manifest.digest]));
}

/** Attestations and the like have the platform `unknown`. An entry without a platform is tried. */
function fitsHost({ platform }: IndexEntry): boolean {
  return !platform || (platform.os === 'linux' && platform.architecture === goArchitecture());
}

import { RegistryError } from '../../registry/errors.ts';
import type { ImageManifest, Manifest } from '../../registry/manifests.ts';
import type { OldManifest } from '../../registry/old-manifest.ts';
import type { Repository } from '../../registry/repository.ts';
import { goArchitecture } from '../configuration/architecture.ts';
import { fitsPlatform, platformText, type Platform } from '../configuration/platform.ts';

const DEPTH = 4;

type Wanted = Readonly<{ platform?: Platform | undefined; signal: AbortSignal }>;

/** The manifest of a platform, by default this machine's; indexes may be nested, to a limit. */
export async function manifestFor(
  repository: Repository,
  manifest: Manifest,
  wanted: Wanted,
  seen: ReadonlySet<string> = new Set(),
): Promise<ImageManifest | OldManifest> {
  if ('image' in manifest) return manifest.image;
  if ('old' in manifest) return manifest.old;
  if (seen.has(manifest.digest)) throw new RegistryError(`the index ${manifest.digest} contains itself`);
  if (seen.size === DEPTH) throw new RegistryError(`indexes are nested deeper than ${DEPTH}`);
  const host = { os: 'linux', architecture: goArchitecture(), variant: '' };
  const platform = wanted.platform ?? host;
  // Attestations and the like have the platform `unknown`. An entry without a platform is tried.
  const [entry] = manifest.index.manifests.filter((each) => !each.platform || fitsPlatform(platform, each.platform));
  if (entry === undefined) {
    throw new RegistryError(`no matching manifest for ${platformText(platform)} in the manifest list entries`);
  }
  const inner = await repository.manifest(entry.digest, wanted.signal);
  return await manifestFor(repository, inner, wanted, new Set([...seen, manifest.digest]));
}

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Credentials } from '../../registry/auth/credentials.ts';
import { withRegistry } from '../../registry/connection/session.ts';
import { RegistryError } from '../../registry/errors.ts';
import type { Manifest } from '../../registry/manifests.ts';
import { Repository } from '../../registry/repository.ts';
import { parseImage } from '../configuration/image-json.ts';
import { hostAndPath, type Reference } from '../names/reference.ts';
import { explainRegistryError } from './pull.ts';

type Needs = Pick<Engine, 'clock' | 'config'>;

type Platform = Readonly<{ os: string; architecture: string; variant?: string | null | undefined }>;

/** An image as its registry has it. */
export type Distribution = Readonly<{
  mediaType: string;
  digest: string;
  size: number;
  platforms: readonly Platform[];
}>;

/** Asks the registry for an image, without a pull. `reference` has a tag or a digest. */
export async function inspectDistribution(
  engine: Needs,
  { reference, credentials, signal }: { reference: Reference; credentials: Credentials; signal: AbortSignal },
): Promise<Distribution> {
  const { host, path } = hostAndPath(reference.repository);
  try {
    return await withRegistry(engine, { host, credentials, useMirrors: true, signal }, async (session) => {
      const repository = new Repository(session, path);
      const wanted = reference.digest ?? reference.tag!;
      const { manifest, mediaType, size } = await repository.describedManifest(wanted, signal);
      const { digest } = manifest;
      return { mediaType, digest, size, platforms: await platformsOf(repository, manifest, signal) };
    });
  } catch (error) {
    if (error instanceof RegistryError && error.status === 401) {
      throw new EngineError('unauthorized', error.message, { cause: error });
    }
    throw explainRegistryError(error, reference);
  }
}

/** An index names them; an image has its own in its configuration, and one of schema 1 in none. */
async function platformsOf(repository: Repository, manifest: Manifest, signal: AbortSignal): Promise<Platform[]> {
  if ('old' in manifest) return [];
  if ('index' in manifest) return manifest.index.manifests.flatMap(({ platform }) => (platform ? [platform] : []));
  const image = parseImage(JSON.parse(await repository.config(manifest.image.config, signal)));
  return [{ os: image.os, architecture: image.architecture, variant: image.variant }];
}

import type { CredentialsByHost } from '../../builder/options.ts';
import type { Engine } from '../../engine.ts';
import type { Platform } from '../../images/configuration/platform.ts';
import {
  familiarReference,
  hostAndPath,
  parseReference,
  withDefaultTag,
  type Reference,
} from '../../images/names/reference.ts';
import { manifestFor } from '../../images/transfers/platform.ts';
import { explainRegistryError } from '../../images/transfers/pull.ts';
import { EngineError } from '../../lib/errors.ts';
import { ANONYMOUS } from '../../registry/auth/credentials.ts';
import { withRegistry } from '../../registry/connection/session.ts';
import { Repository } from '../../registry/repository.ts';

type Wanted = Readonly<{ name: string; platform: Platform | undefined; pulls: boolean }>;
type Resolved = Readonly<{ digest: string; config: string; name: string }>;

/** The configuration of an image that is here, or else in its registry, from where only that is fetched. Throws `notFound`. */
export async function resolveImage(
  engine: Engine,
  { name, platform, pulls }: Wanted,
  credentials: CredentialsByHost,
  signal: AbortSignal,
): Promise<Resolved> {
  const reference = withDefaultTag(parseReference(name));
  const here = pulls ? undefined : imageHere(engine, reference, platform);
  return { ...(here ?? (await imageThere(engine, reference, platform, { credentials, signal }))), name };
}

function imageHere(
  { images }: Engine,
  reference: Reference,
  platform: Platform | undefined,
): Omit<Resolved, 'name'> | undefined {
  try {
    const { id } = images.find(familiarReference(reference), platform);
    return { digest: images.namedTarget(reference) ?? id, config: images.jsonOf(id) };
  } catch (error) {
    if (error instanceof EngineError && error.kind === 'notFound') return undefined;
    throw error;
  }
}

async function imageThere(
  engine: Engine,
  reference: Reference,
  platform: Platform | undefined,
  { credentials, signal }: Readonly<{ credentials: CredentialsByHost; signal: AbortSignal }>,
): Promise<Omit<Resolved, 'name'>> {
  const { host, path } = hostAndPath(reference.repository);
  const given = (await credentials.get(host)) ?? ANONYMOUS;
  try {
    return await withRegistry(engine, { host, credentials: given, useMirrors: true, signal }, async (session) => {
      const repository = new Repository(session, path);
      const manifest = await repository.manifest(reference.digest ?? reference.tag!, signal);
      const found = await manifestFor(repository, manifest, { platform, signal });
      if (!('config' in found.manifest))
        throw new EngineError('invalid', `${familiarReference(reference)} has no configuration: pull it`);
      return { digest: manifest.digest, config: await repository.config(found.manifest.config, signal) };
    });
  } catch (error) {
    throw explainRegistryError(error, reference);
  }
}

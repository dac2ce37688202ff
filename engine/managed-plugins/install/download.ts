import type { Engine } from '../../engine.ts';
import {
  familiarReference,
  hostAndPath,
  parseReference,
  withDefaultTag,
  type Reference,
} from '../../images/names/reference.ts';
import type { Report } from '../../images/progress/progress.ts';
import { manifestFor } from '../../images/transfers/platform.ts';
import { explainRegistryError } from '../../images/transfers/pull.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Credentials } from '../../registry/auth/credentials.ts';
import { withRegistry } from '../../registry/connection/session.ts';
import { RegistryError } from '../../registry/errors.ts';
import type { Descriptor } from '../../registry/manifests.ts';
import { Repository } from '../../registry/repository.ts';
import { parsePluginConfig, privilegesOf, type PluginConfig } from '../plugin-config.ts';
import { checkGranted } from '../privileges.ts';
import type { Granted, Privilege } from '../schema.ts';
import type { InstalledPlugin } from '../store.ts';
import type { Arrival } from './arrival.ts';
import { unpackRoot, type UnpackNeeds } from './unpack.ts';

export type DownloadNeeds = UnpackNeeds & Pick<Engine, 'config'>;

/** A plugin in a registry, and who asks for it. */
export type Remote = Readonly<{ reference: Reference; credentials: Credentials; signal: AbortSignal }>;

type Found = Readonly<{ digest: string; text: string; config: PluginConfig; layers: readonly Descriptor[] }>;

/** The parts of a download that a record keeps. */
export type Downloaded = Pick<InstalledPlugin, 'digest' | 'config' | 'layers'> & { privileges: Privilege[] };

/** The permissions that a plugin asks for. */
export async function remotePrivileges(engine: DownloadNeeds, remote: Remote): Promise<Privilege[]> {
  return await withPlugin(
    engine,
    remote,
    async (_repository, { config }) => await Promise.resolve(privilegesOf(config)),
  );
}

/**
 * Downloads a plugin. Throws `invalid` if its permissions are not those `granted` (undefined: all are), `notFound` and `failed`
 * with the registry's words.
 */
export async function downloadPlugin(
  engine: DownloadNeeds,
  remote: Remote,
  { arrival, granted, report }: { arrival: Arrival; granted: Granted | undefined; report: Report },
): Promise<Downloaded> {
  const { reference, signal } = remote;
  return await withPlugin(engine, remote, async (repository, { digest, text, config, layers }) => {
    if (granted !== undefined) checkGranted(config, granted);
    const from = `Pulling from ${familiarReference({ ...reference, tag: undefined, digest: undefined })}`;
    report({ status: from, id: reference.digest ?? reference.tag! });
    await unpackRoot(engine, repository, layers, { arrival, report, signal });
    report({ status: `Digest: ${digest}` });
    report({ status: `Status: Downloaded newer image for ${familiarReference(reference)}` });
    return {
      digest,
      config: text,
      layers: layers.map((layer) => ({ digest: layer.digest, sizeBytes: layer.size })),
      privileges: privilegesOf(config),
    };
  });
}

async function withPlugin<T>(
  engine: DownloadNeeds,
  { reference, credentials, signal }: Remote,
  use: (repository: Repository, found: Found) => Promise<T>,
): Promise<T> {
  const { host, path } = hostAndPath(reference.repository);
  try {
    return await withRegistry(engine, { host, credentials, useMirrors: true, signal }, async (session) => {
      const repository = new Repository(session, path);
      const found = await repository.manifest(reference.digest ?? reference.tag!, signal, 'plugin');
      const { manifest } = await manifestFor(repository, found, { signal });
      if (!('config' in manifest)) throw new RegistryError('a manifest of schema 1 describes no plugin');
      const text = await repository.config(manifest.config, signal);
      return await use(repository, {
        digest: found.digest,
        text,
        config: parsePluginConfig(text),
        layers: manifest.layers,
      });
    });
  } catch (error) {
    throw explainRegistryError(error, reference);
  }
}

/** The reference that a client names. Throws `invalid` for a malformed one. */
export function pluginReference(name: string): Reference {
  try {
    return withDefaultTag(parseReference(name));
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const why = name === '' ? 'repository name must have at least one component' : error.message;
    throw new EngineError(error.kind, `error parsing reference: "${name}" is not a valid repository/tag: ${why}`, {
      cause: error,
    });
  }
}

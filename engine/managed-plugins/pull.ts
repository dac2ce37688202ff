import { mkdirSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Engine } from '../engine.ts';
import {
  familiarReference,
  hostAndPath,
  parseReference,
  withDefaultTag,
  type Reference,
} from '../images/names/reference.ts';
import { manifestFor } from '../images/transfers/platform.ts';
import { explainRegistryError } from '../images/transfers/pull.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import type { Credentials } from '../registry/auth/credentials.ts';
import { withRegistry } from '../registry/connection/session.ts';
import { RegistryError } from '../registry/errors.ts';
import { Repository } from '../registry/repository.ts';
import { ARRIVING, pluginFolder, pluginsFolder } from './places.ts';
import { parsePluginConfig, privilegesOf, type PluginConfig } from './plugin-config.ts';
import type { Privilege } from './schema.ts';
import { unpackRoot, type UnpackNeeds } from './unpack.ts';

type Needs = UnpackNeeds & Pick<Engine, 'config' | 'db' | 'events' | 'installedPlugins' | 'locks'>;

type Asked = { name: string; credentials: Credentials; signal: AbortSignal };

/**
 * Installs a plugin from a registry, disabled, and reports the permissions that it will have. It ends with its client,
 * and then leaves nothing. Throws `invalid` for a malformed name, `conflict` for an existing plugin, `notFound` and
 * `failed` with the registry's words. Specification, endpoint 58.
 */
export async function pullPlugin(engine: Needs, { name: asked, credentials, signal }: Asked): Promise<Privilege[]> {
  const reference = referenceOf(asked);
  const name = familiarReference(reference);
  const { host, path } = hostAndPath(reference.repository);
  using _lock = await engine.locks.hold(`plugin name ${name}`);
  if (engine.installedPlugins.named(name) !== undefined) {
    throw new EngineError('conflict', `plugin ${name} already exists`);
  }
  try {
    return await withRegistry(engine, { host, credentials, useMirrors: true, signal }, async (session) => {
      const config = await install(engine, new Repository(session, path), { name, reference, signal });
      return privilegesOf(config);
    });
  } catch (error) {
    throw explainRegistryError(error, reference);
  }
}

async function install(
  engine: Needs,
  repository: Repository,
  { name, reference, signal }: { name: string; reference: Reference; signal: AbortSignal },
): Promise<PluginConfig> {
  const found = await repository.manifest(reference.digest ?? reference.tag!, signal, 'plugin');
  const manifest = await manifestFor(repository, found, { signal });
  if (!('config' in manifest)) throw new RegistryError('a manifest of schema 1 describes no plugin');
  const text = await repository.config(manifest.config, signal);
  const config = parsePluginConfig(text);
  const id = newId();
  const folder = join(pluginsFolder(engine.config), ARRIVING, id);
  mkdirSync(join(folder, 'plugin'), { recursive: true, mode: 0o700 });
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => await rm(folder, { recursive: true, force: true }));
  await unpackRoot(engine, repository, manifest.layers, { root: join(folder, 'plugin', 'rootfs'), folder, signal });
  engine.db.transaction(() => {
    engine.installedPlugins.insert({
      id,
      name,
      digest: found.digest,
      installedAt: engine.clock.now(),
      config: text,
      isEnabled: false,
    });
    engine.events.emit('plugin', 'pull', name, { name });
    renameSync(join(folder, 'plugin'), pluginFolder(engine.config, id)); // last: it cannot be rolled back
  });
  return config;
}

function referenceOf(name: string): Reference {
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

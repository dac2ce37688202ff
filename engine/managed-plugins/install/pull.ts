import { renameSync } from 'node:fs';

import type { Engine } from '../../engine.ts';
import { familiarReference } from '../../images/names/reference.ts';
import type { Report } from '../../images/progress/progress.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Credentials } from '../../registry/auth/credentials.ts';
import { pluginFolder } from '../places.ts';
import type { Granted, Privilege } from '../schema.ts';
import { Arrival } from './arrival.ts';
import { downloadPlugin, pluginReference, type DownloadNeeds } from './download.ts';

type Needs = DownloadNeeds & Pick<Engine, 'db' | 'events' | 'installedPlugins' | 'locks'>;

type Pull = Readonly<{
  remote: string;
  /** Its name here. Default: that in the registry. */
  name?: string | undefined;
  credentials: Credentials;
  signal: AbortSignal;
  /** Undefined: whatever it asks for. */
  granted?: Granted | undefined;
  report?: Report;
}>;

/**
 * Installs a plugin from a registry, disabled, and returns the permissions that it will have. It ends with its client,
 * and then leaves nothing. Throws `invalid` for a malformed name, `conflict` for an existing plugin, and like
 * `downloadPlugin`. Specification, endpoint 58.
 */
export async function pullPlugin(
  engine: Needs,
  { remote, name: alias, credentials, signal, granted, report = () => undefined }: Pull,
): Promise<Privilege[]> {
  const reference = pluginReference(remote);
  const origin = familiarReference(reference);
  const name = alias === undefined ? origin : familiarReference(pluginReference(alias));
  using _lock = await holdPluginName(engine, name);
  await using arrival = new Arrival(engine);
  const { id, plugin } = arrival;
  const asked = { reference, credentials, signal };
  const { privileges, ...downloaded } = await downloadPlugin(engine, asked, { arrival, granted, report });
  engine.db.transaction(() => {
    const record = { id, name, ...downloaded, installedAt: engine.clock.now(), isEnabled: false };
    engine.installedPlugins.insert(origin === name ? record : { ...record, origin });
    engine.events.emit('plugin', 'pull', name, { name });
    renameSync(plugin, pluginFolder(engine.config, id)); // last: it cannot be rolled back
  });
  return privileges;
}

/** Holds the name of a plugin that is to be made. Throws `conflict` for an existing one. */
export async function holdPluginName(
  { installedPlugins, locks }: Pick<Engine, 'installedPlugins' | 'locks'>,
  name: string,
): Promise<Disposable> {
  const lock = await locks.hold(`plugin name ${name}`);
  if (installedPlugins.named(name) === undefined) return lock;
  lock[Symbol.dispose]();
  throw new EngineError('conflict', `plugin ${name} already exists`);
}

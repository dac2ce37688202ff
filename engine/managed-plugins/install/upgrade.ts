import { mkdirSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Engine } from '../../engine.ts';
import { familiarReference } from '../../images/names/reference.ts';
import type { Report } from '../../images/progress/progress.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Credentials } from '../../registry/auth/credentials.ts';
import { layerFile, pluginFolder, rootOf } from '../places.ts';
import { pluginLock } from '../runs/follow.ts';
import type { Granted } from '../schema.ts';
import { Arrival } from './arrival.ts';
import { downloadPlugin, pluginReference, type DownloadNeeds } from './download.ts';

type Needs = DownloadNeeds & Pick<Engine, 'db' | 'events' | 'installedPlugins' | 'locks'>;

type Upgrade = Readonly<{
  remote: string;
  credentials: Credentials;
  signal: AbortSignal;
  granted: Granted;
  report: Report;
}>;

/**
 * Replaces the files and the configuration of a disabled plugin by those of another reference; its name, and what it has propagated
 * to the machine, stay, its changed settings do not. Throws `notFound`, `conflict` for an enabled plugin, and like
 * `downloadPlugin`; then nothing is changed.
 */
export async function upgradePlugin(engine: Needs, ref: string, upgrade: Upgrade): Promise<void> {
  const { config, db, events, installedPlugins, locks } = engine;
  const reference = pluginReference(upgrade.remote);
  const { id } = installedPlugins.find(ref);
  using _lock = await locks.hold(pluginLock(id));
  const before = installedPlugins.find(id);
  if (before.isEnabled) throw new EngineError('conflict', `plugin ${before.name} must be disabled before upgrading`);
  await using arrival = new Arrival(engine);
  const { credentials, signal, granted, report } = upgrade;
  const asked = { reference, credentials, signal };
  const { privileges: _, ...downloaded } = await downloadPlugin(engine, asked, { arrival, granted, report });
  const rootfs = `rootfs-${arrival.id}`;
  const folder = pluginFolder(config, id);
  mkdirSync(join(folder, 'layers'), { recursive: true, mode: 0o700 });
  for (const { digest } of downloaded.layers ?? [])
    renameSync(layerFile(arrival.plugin, digest), layerFile(folder, digest));
  db.transaction(() => {
    const origin = familiarReference(reference);
    installedPlugins.change(id, { ...downloaded, rootfs, origin, settings: {} });
    events.emit('plugin', 'upgrade', id, { name: before.name });
    renameSync(arrival.root, join(folder, rootfs)); // last: it cannot be rolled back
  });
  const kept = new Set(downloaded.layers?.map(({ digest }) => layerFile(folder, digest)));
  const old = (before.layers ?? []).map(({ digest }) => layerFile(folder, digest)).filter((file) => !kept.has(file));
  for (const path of [rootOf(config, before), ...old]) await rm(path, { recursive: true, force: true });
}

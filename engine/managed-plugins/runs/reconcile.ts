import { existsSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import { mountTable } from '../../host/mounts/mount-table.ts';
import { unmount } from '../../host/mounts/mount.ts';
import { namesIn } from '../../lib/folders.ts';
import { Shim } from '../../runtime/shim/shim.ts';
import type { SetAside } from '../../trees/set-aside.ts';
import { ARRIVING, pluginFolder, pluginsFolder, pluginShimFolder, runsFolder, TRASH } from '../places.ts';
import type { InstalledPlugin } from '../store.ts';
import { followPlugin, restartLater, type FollowNeeds } from './follow.ts';
import { launchPlugin, removeRun, unmountPropagated } from './launch.ts';

/**
 * At the daemon's start: reconnects to running plugins, starts the other enabled ones, and cleans up interrupted work
 * of the last daemon. A plugin that does not start is tried again later.
 */
export async function reconcilePlugins(engine: FollowNeeds & { setAside: SetAside }): Promise<void> {
  const { config, installedPlugins, setAside } = engine;
  const top = pluginsFolder(config);
  await removeArriving(join(top, ARRIVING));
  for (const name of namesIn(top)) {
    if (name !== TRASH && !installedPlugins.isKnown(name)) setAside.take(pluginFolder(config, name));
  }
  const runs = new Set(namesIn(runsFolder(config)));
  for (const id of runs) if (!installedPlugins.isKnown(id)) await endLeft(engine, id);
  await Promise.all(
    installedPlugins.all().map(async (plugin) => {
      try {
        if (plugin.isEnabled) await findAgain(engine, plugin);
        else if (runs.has(plugin.id)) await endLeft(engine, plugin.id);
      } catch (error) {
        engine.log.warn({ err: error, plugin: plugin.name }, 'the rest of a plugin cannot be removed');
      }
    }),
  );
}

/** A killed daemon may have left the layers of a plugin mounted. */
async function removeArriving(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  const below = `${realpathSync(folder)}/`;
  for (const { path } of mountTable()) if (path.startsWith(below)) unmount(path, { lazy: true });
  await rm(folder, { recursive: true, force: true });
}

async function findAgain(engine: FollowNeeds, plugin: InstalledPlugin): Promise<void> {
  const { id } = plugin;
  try {
    const shim = await Shim.reconnect(pluginShimFolder(engine.config, id));
    if (shim?.phase === 'started') {
      followPlugin(engine, id, shim);
      return;
    }
    await shim?.end();
    await removeRun(engine, id, true);
    followPlugin(engine, id, await launchPlugin(engine, plugin));
  } catch (error) {
    restartLater(engine, id, { err: error });
  }
}

/** Its enabling was interrupted before the record, or its disabling after it. */
async function endLeft(engine: FollowNeeds, id: string): Promise<void> {
  const shim = await Shim.reconnect(pluginShimFolder(engine.config, id));
  await shim?.end();
  await removeRun(engine, id, true);
  unmountPropagated(engine, id);
}

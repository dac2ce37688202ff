import { EngineError } from '../lib/errors.ts';
import type { Trash } from '../trees/trash.ts';
import { pluginFolder } from './places.ts';
import { disableHeld, type DisableNeeds } from './runs/disable.ts';
import { pluginLock } from './runs/follow.ts';

/**
 * Removes a plugin with all its files. Throws `notFound`, and `conflict` for an enabled plugin; with `force` it is
 * disabled first. Specification, endpoint 62.
 */
export async function removePlugin(
  engine: DisableNeeds & { pluginTrash: Trash },
  ref: string,
  { force = false } = {},
): Promise<void> {
  const { config, db, events, installedPlugins, locks, pluginRuns, pluginTrash } = engine;
  const { id } = installedPlugins.find(ref);
  using _lock = await locks.hold(pluginLock(id));
  const plugin = installedPlugins.find(id);
  if (plugin.isEnabled) {
    if (!force) throw new EngineError('conflict', `plugin ${plugin.name} is enabled`);
    await disableHeld(engine, plugin, force);
  }
  await pluginRuns.of(id).cleaned;
  pluginRuns.forget(id);
  pluginTrash.take(pluginFolder(config, id), () =>
    db.transaction(() => {
      installedPlugins.delete(id);
      events.emit('plugin', 'remove', id, { name: plugin.name });
    }),
  );
}

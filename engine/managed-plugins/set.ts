import type { Engine } from '../engine.ts';
import { EngineError } from '../lib/errors.ts';
import { configOf } from './plugin-config.ts';
import { pluginLock } from './runs/follow.ts';
import { readSettings } from './settings.ts';

/**
 * Changes settings of a disabled plugin, such as `DEBUG=1`. Throws `notFound`, `conflict` for an enabled one, and `invalid` for
 * a setting that it does not allow; then nothing is changed.
 */
export async function setPlugin(
  { installedPlugins, locks }: Pick<Engine, 'installedPlugins' | 'locks'>,
  ref: string,
  changes: readonly string[],
): Promise<void> {
  const { id } = installedPlugins.find(ref);
  using _lock = await locks.hold(pluginLock(id));
  const plugin = installedPlugins.find(id);
  if (plugin.isEnabled)
    throw new EngineError('conflict', 'cannot set on an active plugin, disable plugin before setting');
  const changed = readSettings(configOf(plugin), changes);
  installedPlugins.change(id, { settings: { ...plugin.settings, ...changed } });
}

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Shim } from '../../runtime/shim/shim.ts';
import type { InstalledPlugin } from '../store.ts';
import { followPlugin, pluginLock, type FollowNeeds } from './follow.ts';
import { launchPlugin, removeRun, unmountPropagated } from './launch.ts';

export type EnableNeeds = FollowNeeds & Pick<Engine, 'db' | 'events' | 'plugins'>;

/** The time that a plugin has to listen and to answer. */
const HANDSHAKE_TIMEOUT_SECONDS = 30;

/**
 * Starts a plugin and keeps it running: it is enabled when it has answered the handshake. Throws `notFound`, `conflict`
 * when it is enabled already, and `failed` when it does not start or answer. Specification, endpoint 60.
 */
export async function enablePlugin(engine: EnableNeeds, ref: string, timeoutSeconds = 0): Promise<void> {
  const { db, events, installedPlugins, locks, pluginRuns } = engine;
  const { id } = installedPlugins.find(ref);
  using _lock = await locks.hold(pluginLock(id));
  const plugin = installedPlugins.find(id);
  if (plugin.isEnabled) throw new EngineError('conflict', `plugin already enabled: plugin ${plugin.name} is enabled`);
  await using undo = new AsyncDisposableStack();
  undo.defer(() => unmountPropagated(engine, id));
  await pluginRuns.of(id).cleaned;
  const shim = await launchPlugin(engine, plugin);
  undo.defer(async () => await endRun(engine, plugin, shim));
  await handshake(engine, plugin, { shim, seconds: timeoutSeconds > 0 ? timeoutSeconds : HANDSHAKE_TIMEOUT_SECONDS });
  db.transaction(() => {
    installedPlugins.setEnabled(id, true);
    events.emit('plugin', 'enable', id, { name: plugin.name });
  });
  undo.move();
  followPlugin(engine, id, shim);
}

/** Stops waiting if the plugin ends before it answers. */
async function handshake(
  { plugins, pluginRuns }: EnableNeeds,
  plugin: InstalledPlugin,
  { shim, seconds }: { shim: Shim; seconds: number },
): Promise<void> {
  const limits = { timeoutMs: seconds * 1000, patienceMs: seconds * 1000 };
  const answered = plugins.activate(pluginRuns.addressed(plugin), limits);
  const ended = shim.exited.then(({ exitCode }) => {
    throw new EngineError('failed', `plugin "${plugin.name}" ended with the code ${exitCode} before it listened`);
  });
  answered.catch(() => undefined);
  await Promise.race([answered, ended]);
}

async function endRun(engine: EnableNeeds, { id }: InstalledPlugin, shim: Shim): Promise<void> {
  await shim.end();
  await removeRun(engine, id, shim.wasLost);
}

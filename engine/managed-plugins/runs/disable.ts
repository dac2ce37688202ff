import { constants as os } from 'node:os';

import type { Runs } from '../../containers/runs/runs.ts';
import type { ContainerStore } from '../../containers/store.ts';
import type { Engine } from '../../engine.ts';
import { settlesWithin } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { ShimLost, type Shim } from '../../runtime/shim/shim.ts';
import type { InstalledPlugin } from '../store.ts';
import type { EnableNeeds } from './enable.ts';
import { pluginLock } from './follow.ts';
import { removeRun, unmountPropagated } from './launch.ts';
import type { PluginRun } from './runs.ts';

export type DisableNeeds = EnableNeeds & Pick<Engine, 'networks' | 'volumes'>;

/** Between SIGTERM and SIGKILL, as in docker. */
const GRACE_SECONDS = 10;

/**
 * Ends a plugin. Throws `notFound`, and `conflict` when it is disabled already, or, without `force`, while a volume or
 * the authorization needs it. Specification, endpoint 61.
 */
export async function disablePlugin(engine: DisableNeeds, ref: string, { force = false } = {}): Promise<void> {
  const { id } = engine.installedPlugins.find(ref);
  using _lock = await engine.locks.hold(pluginLock(id));
  await disableHeld(engine, engine.installedPlugins.find(id), force);
}

/** Like `disablePlugin`, for a caller that holds the plugin's lock. */
export async function disableHeld(engine: DisableNeeds, plugin: InstalledPlugin, force: boolean): Promise<void> {
  const { db, events, installedPlugins, pluginRuns } = engine;
  const { id, name } = plugin;
  if (!plugin.isEnabled)
    throw new EngineError('conflict', `plugin is already disabled: plugin ${name} found but disabled`);
  if (!force && isUsed(engine, plugin)) throw new EngineError('conflict', `plugin ${name} is in use`);
  const run = pluginRuns.of(id);
  db.transaction(() => {
    installedPlugins.setEnabled(id, false);
    events.emit('plugin', 'disable', id, { name });
  });
  pluginRuns.forget(id);
  await endPlugin(engine, id, run);
}

/**
 * Ends all plugins at the end of a daemon without live-restore, after the containers that need them; they stay enabled.
 */
export async function endAllPlugins(engine: DisableNeeds & { containers: ContainerStore; runs: Runs }): Promise<void> {
  const { clock, containers, installedPlugins, pluginRuns, runs } = engine;
  const running = installedPlugins.all().filter(({ id }) => pluginRuns.of(id).shim !== undefined);
  if (running.length === 0) return;
  const unmounted = Promise.all(containers.all().map(async ({ id }) => await runs.of(id).cleaned()));
  await settlesWithin(unmounted, GRACE_SECONDS, clock);
  await Promise.all(running.map(async ({ id }) => await endPlugin(engine, id, pluginRuns.of(id))));
}

/** Nothing of it is left running, nor mounted. */
async function endPlugin(engine: DisableNeeds, id: string, run: PluginRun): Promise<void> {
  if (run.shim !== undefined) await endGently(engine, run.shim);
  await run.cleaned;
  await removeRun(engine, id);
  unmountPropagated(engine, id);
}

function isUsed({ config, installedPlugins, networks, volumes }: DisableNeeds, { id }: InstalledPlugin): boolean {
  const ofNetworks = networks.list().flatMap(({ driver, custom }) => [driver, custom?.ipam.driver ?? []].flat());
  const names = [...config.authorizationPlugins, ...volumes.all().map(({ driver }) => driver), ...ofNetworks];
  return [...new Set(names)].some((name) => installedPlugins.search(name)?.id === id);
}

/** The shim's follower cleans up. */
async function endGently({ clock }: DisableNeeds, shim: Shim): Promise<void> {
  try {
    await shim.signal(os.signals.SIGTERM);
  } catch (error) {
    // It is ending by itself.
    if (!(error instanceof ShimLost) && !(error instanceof EngineError && error.kind === 'conflict')) throw error;
  }
  if (
    !(await settlesWithin(
      shim.exited.catch(() => undefined),
      GRACE_SECONDS,
      clock,
    ))
  )
    await shim.end();
  await shim.gone;
}

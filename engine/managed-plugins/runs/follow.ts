import type { Engine } from '../../engine.ts';
import type { Shim } from '../../runtime/shim/shim.ts';
import { launchPlugin, removeRun, type LaunchNeeds } from './launch.ts';

export type FollowNeeds = LaunchNeeds &
  Pick<Engine, 'background' | 'clock' | 'installedPlugins' | 'locks' | 'pluginRuns'> & {
    log: { warn(details: object, message: string): void };
  };

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 60_000;
/** A plugin that has run this long is restarted at once. */
const HEALTHY_MS = 10_000;

export function pluginLock(id: string): string {
  return `plugin ${id}`;
}

/** Restarts an enabled plugin whenever it ends: the shorter its run, the longer the delay. */
export function followPlugin(engine: FollowNeeds, id: string, shim: Shim): void {
  const { background, clock, pluginRuns } = engine;
  const run = pluginRuns.of(id);
  run.shim = shim;
  const startedAt = clock.now();
  const ended = (reason: object, wasLost: boolean): void => {
    if (clock.now().since(startedAt).total('milliseconds') > HEALTHY_MS) run.delayMs = 0;
    run.shim = undefined;
    run.cleaned = background.untilDone('clean up after a plugin', { plugin: id }, async () => {
      shim.release();
      await shim.gone;
      await removeRun(engine, id, wasLost);
    }).done;
    background.run('restart a plugin that has ended', { plugin: id }, async () => {
      await run.cleaned;
      restartLater(engine, id, reason);
    });
  };
  shim.exited.then(
    ({ exitCode }) => ended({ exitCode }, false),
    (error: unknown) => ended({ err: error }, true),
  );
}

/** Does nothing if the plugin was disabled meanwhile, or another caller starts it. */
export function restartLater(engine: FollowNeeds, id: string, reason: object): void {
  const { background, installedPlugins, log, pluginRuns } = engine;
  const plugin = installedPlugins.get(id);
  if (plugin?.isEnabled !== true || pluginRuns.areLast) return;
  const run = pluginRuns.of(id);
  const delayMs = run.delayMs;
  run.delayMs = Math.min(Math.max(delayMs * 2, FIRST_DELAY_MS), MAX_DELAY_MS);
  log.warn({ plugin: plugin.name, id, delayMs, ...reason }, 'an enabled plugin does not run; it is restarted');
  run.restart = background.after(delayMs, 'restart a plugin', { plugin: id }, async () => await restart(engine, id));
}

async function restart(engine: FollowNeeds, id: string): Promise<void> {
  using _lock = await engine.locks.hold(pluginLock(id));
  const plugin = engine.installedPlugins.get(id);
  if (plugin?.isEnabled !== true || engine.pluginRuns.areLast || engine.pluginRuns.of(id).shim !== undefined) return;
  try {
    followPlugin(engine, id, await launchPlugin(engine, plugin));
  } catch (error) {
    restartLater(engine, id, { err: error });
  }
}

import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import { removeRemains, removeIfLeft } from '../../containers/runs/remove-remains.ts';
import type { Engine } from '../../engine.ts';
import { mountTable } from '../../host/mounts/mount-table.ts';
import { mountBind, setPropagation, unmount } from '../../host/mounts/mount.ts';
import { EngineError } from '../../lib/errors.ts';
import { ociSpec } from '../../oci/spec.ts';
import { removeShimFolder } from '../../runtime/shim/shim-folder.ts';
import { Shim } from '../../runtime/shim/shim.ts';
import { StartFailed } from '../../runtime/start-failure.ts';
import { describePlugin } from '../describe.ts';
import { pluginCgroup, pluginFolder, pluginShimFolder, propagatedFolder, rootOf, socketFolder } from '../places.ts';
import { configInForce } from '../settings.ts';
import type { InstalledPlugin } from '../store.ts';
import { hideAllViews } from './views.ts';

export type LaunchNeeds = Pick<Engine, 'config' | 'runtimes'>;

const LOG_BYTES = 1024 * 1024;
const LOG_FILES = 2;

/** Starts a plugin after a complete clean-up. Throws `failed` with the runtime's reason, and then cleans up. */
export async function launchPlugin(engine: LaunchNeeds, plugin: InstalledPlugin): Promise<Shim> {
  const { config, runtimes } = engine;
  const { id } = plugin;
  const described = configInForce(plugin);
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => await removeRun(engine, id));
  const directory = pluginShimFolder(config, id);
  for (const folder of [directory, socketFolder(config, id)]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { path, told } = pluginCgroup(config, id);
  const shim = await Shim.spawn({
    id,
    directory,
    runtime: runtimes.get(),
    mode: { kind: 'container' },
    tty: false,
    openStdin: false,
    stdinOnce: false,
    log: { path: join(pluginFolder(config, id), 'output.log'), maxBytes: LOG_BYTES, maxFiles: LOG_FILES },
    cgroupPath: path,
    cgroupBySystemd: told.bySystemd,
  });
  undo.defer(async () => await shim.end());
  const spec = describePlugin(described, {
    id,
    root: rootOf(config, plugin),
    sockets: socketFolder(config, id),
    propagated: described.PropagatedMount ? shared(propagatedFolder(config, id)) : undefined,
    cgroup: told,
  });
  writeFileSync(join(directory, 'config.json'), JSON.stringify(ociSpec(spec)));
  try {
    await shim.start();
  } catch (error) {
    throw error instanceof StartFailed ? new EngineError('failed', error.message, { cause: error }) : error;
  }
  undo.move();
  return shim;
}

/** Removes the rest of a run from the exec root, the runtime and the cgroups; the plugin's mounts stay. */
export async function removeRun({ config, runtimes }: LaunchNeeds, id: string, wasLost = false): Promise<void> {
  const remove = wasLost ? removeRemains : removeIfLeft;
  await remove(runtimes.toRemove(undefined), id, pluginCgroup(config, id).path);
  await removeShimFolder(pluginShimFolder(config, id));
  await rm(socketFolder(config, id), { recursive: true, force: true });
}

/** Unmounts the mounts that a plugin has left. */
export function unmountPropagated({ config }: Pick<LaunchNeeds, 'config'>, id: string): void {
  hideAllViews(config, id);
  const folder = propagatedFolder(config, id);
  if (isMounted(folder)) unmount(folder, { lazy: true });
}

/** A mount of its own, because the data root is private: mounts in it are visible on both sides. */
function shared(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  if (!isMounted(folder)) mountBind(folder, folder);
  setPropagation(folder, 'shared');
  return folder;
}

function isMounted(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const path = realpathSync(folder);
  return mountTable().some((mount) => mount.path === path);
}

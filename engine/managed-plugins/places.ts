import { join } from 'node:path';

import type { Config } from '../config/daemon-config.ts';
import { cgroupPath, runtimeCgroupPath, usualCgroupPlace } from '../host/cgroups/cgroup-driver.ts';
import { shortId } from '../lib/ids.ts';
import type { InstalledPlugin } from './store.ts';

type Roots = Pick<Config, 'dataRoot' | 'execRoot'>;

/** The folder of all plugins; removed ones disappear in `.trash`. */
export function pluginsFolder({ dataRoot }: Pick<Config, 'dataRoot'>): string {
  return join(dataRoot, 'plugins');
}

/** No plugin has such a name. */
export const TRASH = '.trash';
/** For plugins that are being installed; the next daemon removes leftovers of a killed one. */
export const ARRIVING = '.arriving';

/** `rootfs`, `propagated-mount` and the log `output.log` of one plugin. */
export function pluginFolder(config: Pick<Config, 'dataRoot'>, id: string): string {
  return join(pluginsFolder(config), id);
}

export const ROOTFS = 'rootfs';

/** The plugin's root file system: plain files, as its volumes may be among them. */
export function rootOf(config: Pick<Config, 'dataRoot'>, { id, rootfs = ROOTFS }: InstalledPlugin): string {
  return join(pluginFolder(config, id), rootfs);
}

/** The files of the plugin's layers, by their digests, in its own folder or in that of an arriving one. */
export function layerFile(folder: string, digest: string): string {
  return join(folder, 'layers', digest.slice('sha256:'.length));
}

/** Mounts of the plugin in here are visible to the machine. */
export function propagatedFolder(config: Pick<Config, 'dataRoot'>, id: string): string {
  return join(pluginFolder(config, id), 'propagated-mount');
}

/** The plugin's folders as containers have them: one for each user of a volume. */
export function viewsFolder(config: Pick<Config, 'dataRoot'>, id: string): string {
  return join(pluginFolder(config, id), 'views');
}

/** The folder of the shims of all running plugins. */
export function runsFolder({ execRoot }: Pick<Roots, 'execRoot'>): string {
  return join(execRoot, 'plugins');
}

/** The plugin sees it as /run/docker/plugins. Short, because the path of a socket has 107 bytes at most. */
export function socketFolder({ execRoot }: Pick<Roots, 'execRoot'>, id: string): string {
  return join(execRoot, 'plugin-sockets', shortId(id));
}

export function pluginShimFolder({ execRoot }: Pick<Roots, 'execRoot'>, id: string): string {
  return join(runsFolder({ execRoot }), id);
}

/** The path in the hierarchies, the runtime's form of it, and whether systemd makes the cgroup. */
export function pluginCgroup(
  { cgroupDriver: driver }: Pick<Config, 'cgroupDriver'>,
  id: string,
): { path: string; told: { path: string; bySystemd: boolean } } {
  const place = usualCgroupPlace(driver, 'gantry');
  return {
    path: cgroupPath(place, id),
    told: { path: runtimeCgroupPath(place, id), bySystemd: driver === 'systemd' },
  };
}

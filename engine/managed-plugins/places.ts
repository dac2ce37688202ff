import { join } from 'node:path';

import type { Config } from '../config/daemon-config.ts';
import { cgroupPath, runtimeCgroupPath, usualCgroupParent } from '../host/cgroups/cgroup-driver.ts';
import { shortId } from '../lib/ids.ts';

type Roots = Pick<Config, 'dataRoot' | 'execRoot'>;

/** Of all plugins; removed ones disappear in `.trash`. */
export function pluginsFolder({ dataRoot }: Pick<Config, 'dataRoot'>): string {
  return join(dataRoot, 'plugins');
}

/** No plugin has such a name. */
export const TRASH = '.trash';
/** Of plugins that are on their way; what a killed daemon has left is removed by the next one. */
export const ARRIVING = '.arriving';

/** `rootfs`, `propagated-mount` and the log `output.log` of one plugin. */
export function pluginFolder(config: Pick<Config, 'dataRoot'>, id: string): string {
  return join(pluginsFolder(config), id);
}

/** The plugin's root file system: plain files, as its volumes may be among them. */
export function rootOf(config: Pick<Config, 'dataRoot'>, id: string): string {
  return join(pluginFolder(config, id), 'rootfs');
}

/** What the plugin mounts here, the machine sees too. */
export function propagatedFolder(config: Pick<Config, 'dataRoot'>, id: string): string {
  return join(pluginFolder(config, id), 'propagated-mount');
}

/** Of the shims of all plugins that run. */
export function runsFolder({ execRoot }: Pick<Roots, 'execRoot'>): string {
  return join(execRoot, 'plugins');
}

/** The plugin has it as /run/docker/plugins. Short, because the path of a socket has 107 bytes at most. */
export function socketFolder({ execRoot }: Pick<Roots, 'execRoot'>, id: string): string {
  return join(execRoot, 'plugin-sockets', shortId(id));
}

export function pluginShimFolder({ execRoot }: Pick<Roots, 'execRoot'>, id: string): string {
  return join(runsFolder({ execRoot }), id);
}

/** The path in the hierarchies, what the runtime is told instead, and whether systemd is to make it. */
export function pluginCgroup(
  { cgroupDriver: driver }: Pick<Config, 'cgroupDriver'>,
  id: string,
): { path: string; told: { path: string; bySystemd: boolean } } {
  const place = { driver, parent: usualCgroupParent(driver) };
  return {
    path: cgroupPath(place, id),
    told: { path: runtimeCgroupPath(place, id), bySystemd: driver === 'systemd' },
  };
}

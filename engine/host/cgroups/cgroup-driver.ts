import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { isRootless } from '../rootless.ts';
import { detectCgroups } from './cgroups.ts';

/** The maker of the containers' cgroups: the runtime itself, or systemd on its request. */
export type CgroupDriver = 'systemd' | 'cgroupfs';

/**
 * The place of cgroups: with `cgroupfs` below the path `parent`, with `systemd` in a scope of the slice `parent` whose
 * name begins with `prefix`; without one it is of an earlier version.
 */
export type CgroupPlace = Readonly<{ driver: CgroupDriver; parent: string; prefix?: string }>;

/** Monitors know containers by docker's names of cgroups; ours are of plugins, and of containers of earlier versions. */
type CgroupPrefix = 'docker' | 'gantry';

export function isSystemdRunning(): boolean {
  return existsSync('/run/systemd/system');
}

/** systemd owns a machine's version 2 hierarchy where it is the first process, so it is asked; as in dockerd. */
export function usualCgroupDriver(): CgroupDriver {
  return !isRootless && isSystemdRunning() && detectCgroups().version === 2 ? 'systemd' : 'cgroupfs';
}

/** The place where the settings name no parent. */
export function usualCgroupPlace(driver: CgroupDriver, prefix: CgroupPrefix): CgroupPlace {
  return { driver, parent: driver === 'systemd' ? 'system.slice' : `/${prefix}`, prefix };
}

/** `a.slice`, `a-b.slice` which is below it, but no `a--b.slice` nor a path. */
export function isSlice(name: string): boolean {
  return /^(-|[^-/]+(-[^-/]+)*)\.slice$/.test(name);
}

/** The path within the hierarchies. */
export function cgroupPath({ driver, parent, prefix = 'gantry' }: CgroupPlace, id: string): string {
  return driver === 'systemd' ? join(sliceFolder(parent), `${prefix}-${id}.scope`) : join('/', parent, id);
}

/** The runtime's form of the path; with `--systemd-cgroup` if systemd makes the cgroup. */
export function runtimeCgroupPath(place: CgroupPlace, id: string): string {
  const { driver, parent, prefix = 'gantry' } = place;
  return driver === 'systemd' ? `${parent}:${prefix}:${id}` : cgroupPath(place, id);
}

/** systemd nests slices by their names: `a-b.slice` is in `a.slice`, and `-.slice` is the root. */
function sliceFolder(slice: string): string {
  if (slice === '-.slice') return '/';
  const words = slice.slice(0, -'.slice'.length).split('-');
  return join('/', ...words.map((_, index) => `${words.slice(0, index + 1).join('-')}.slice`));
}

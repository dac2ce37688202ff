import { join } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
import { cgroupPath, runtimeCgroupPath, usualCgroupPlace, type CgroupPlace } from '../../host/cgroups/cgroup-driver.ts';
import { detectCgroups, hasCgroup } from '../../host/cgroups/cgroups.ts';
import type { Container } from '../store.ts';

type Roots = Pick<Config, 'dataRoot' | 'execRoot'>;

/** The container's own folder, with its log and the files that are mounted into /etc. */
export function containerFolder({ dataRoot }: Roots, id: string): string {
  return join(dataRoot, 'containers', id);
}

/** The folder of a running container's shim; it disappears at a reboot, like the run. */
export function shimFolder({ execRoot }: Roots, id: string): string {
  return join(execRoot, 'shims', id);
}

/** The cgroup of the next run. */
export function cgroupPlace(
  { cgroupDriver: driver, cgroupParent }: Pick<Config, 'cgroupDriver' | 'cgroupParent'>,
  { hostConfig }: Pick<Container, 'hostConfig'>,
): CgroupPlace {
  const usual = usualCgroupPlace(driver, 'docker');
  return { ...usual, parent: hostConfig.CgroupParent || cgroupParent || usual.parent };
}

/** The path within the cgroup hierarchies. */
export function cgroupPathOf(container: Pick<Container, 'id' | 'hostConfig' | 'cgroup'>): string {
  return cgroupPath(placeOf(container), container.id);
}

/** The runtime's form of the path, and whether systemd makes the cgroup. */
export function runtimeCgroupOf(container: Pick<Container, 'id' | 'hostConfig' | 'cgroup'>): {
  path: string;
  bySystemd: boolean;
} {
  const place = placeOf(container);
  return { path: runtimeCgroupPath(place, container.id), bySystemd: place.driver === 'systemd' };
}

/** Records of earlier versions lack the cgroup. */
function placeOf({ hostConfig, cgroup }: Pick<Container, 'hostConfig' | 'cgroup'>): CgroupPlace {
  if (cgroup !== undefined) return cgroup;
  const earlier = usualCgroupPlace('cgroupfs', 'gantry');
  return { ...earlier, parent: hostConfig.CgroupParent || earlier.parent };
}

/** Paths of the cgroup of a container without a record: those that exist, or one for the runtime's own record. */
export function cgroupsWithoutRecord(id: string): string[] {
  const paths = (['docker', 'gantry'] as const).flatMap((prefix) =>
    (['cgroupfs', 'systemd'] as const).map((driver) => cgroupPath(usualCgroupPlace(driver, prefix), id)),
  );
  const existing = paths.filter((path) => hasCgroup(detectCgroups(), path));
  return existing.length > 0 ? existing : paths.slice(0, 1);
}

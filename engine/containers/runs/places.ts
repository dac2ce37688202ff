import { join } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
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

/** The path within the cgroup hierarchies. */
export function cgroupPathOf({ id, hostConfig }: Pick<Container, 'id' | 'hostConfig'>): string {
  const parent = hostConfig.CgroupParent === '' ? '/gantry' : hostConfig.CgroupParent;
  return join('/', parent, id);
}

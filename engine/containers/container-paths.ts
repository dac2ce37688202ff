import { join } from 'node:path';

import type { Container } from './store.ts';

type Roots = { dataRoot: string; execRoot: string };

/** What the daemon keeps of a container besides its record and its file system. */
export function folderOf({ dataRoot }: Pick<Roots, 'dataRoot'>, id: string): string {
  return join(dataRoot, 'containers', id);
}

export function logPathOf(roots: Pick<Roots, 'dataRoot'>, id: string): string {
  return join(folderOf(roots, id), `${id}-json.log`);
}

/** Where the shim and the runtime's bundle of the present run are. */
export function shimFolderOf({ execRoot }: Pick<Roots, 'execRoot'>, id: string): string {
  return join(execRoot, 'shims', id);
}

/** Inside the hierarchies. */
export function cgroupPathOf({ id, hostConfig }: Pick<Container, 'id' | 'hostConfig'>): string {
  return join('/', hostConfig.CgroupParent || 'gantry', id);
}

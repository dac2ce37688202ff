import { existsSync, realpathSync } from 'node:fs';
import { posix } from 'node:path';

import { mountTable } from './mount-table.ts';
import { mountBind, setPropagation, unmount } from './mount.ts';

/**
 * Bind-mounts a folder on itself with private propagation: mounts below it stay out of the host's table, and shims
 * clone our namespace. A folder that is already a mount point gets our mount on top, and only that is unmounted at the
 * end; not while one of the folders `kept` has a mount, which outlives us.
 */
export function privateMount(folder: string, { kept }: { kept: readonly string[] }): Disposable {
  // Left by a killed daemon: another one on top would leak it.
  if (!isMountedOnItself(folder)) mountBind(folder, folder);
  setPropagation(folder, 'private');
  return {
    [Symbol.dispose]: () => {
      if (!kept.some(isMountedBelow)) unmount(folder, { lazy: true });
    },
  };
}

function isMountedBelow(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const below = `${realpathSync(folder)}/`;
  return mountTable().some(({ path }) => path.startsWith(below));
}

/** Whether the uppermost mount of this folder is a bind mount of the folder itself. */
function isMountedOnItself(folder: string): boolean {
  const path = realpathSync(folder);
  const mounts = mountTable();
  const mount = mounts.findLast((each) => each.path === path);
  const below = mounts.find(({ id }) => id === mount?.parent);
  if (mount === undefined || below === undefined || mount.device !== below.device) return false;
  return mount.root === posix.join(below.root, posix.relative(below.path, path));
}

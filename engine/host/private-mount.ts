import { realpathSync } from 'node:fs';
import { posix } from 'node:path';

import { mountTable } from './mount-table.ts';
import { mountBind, setPropagation, unmount } from './mount.ts';

/**
 * Mounts a folder on itself, privately: what is mounted below stays out of the host's table, and shims clone our
 * namespace. A folder that is the root of somebody's mount gets one of ours on top, which alone is unmounted at the end.
 */
export function privateMount(folder: string): Disposable {
  // A killed daemon has left it: one more on top of it would stay for ever.
  if (!isMountedOnItself(folder)) mountBind(folder, folder);
  setPropagation(folder, 'private');
  return { [Symbol.dispose]: () => unmount(folder, { lazy: true }) };
}

/** Whether the uppermost mount of this folder shows what was there before it. */
function isMountedOnItself(folder: string): boolean {
  const path = realpathSync(folder);
  const mounts = mountTable();
  const mount = mounts.findLast((each) => each.path === path);
  const below = mounts.find(({ id }) => id === mount?.parent);
  if (mount === undefined || below === undefined || mount.device !== below.device) return false;
  return mount.root === posix.join(below.root, posix.relative(below.path, path));
}

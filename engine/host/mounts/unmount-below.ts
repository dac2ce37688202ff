import { existsSync, realpathSync } from 'node:fs';

import { mountTable } from './mount-table.ts';
import { unmount } from './mount.ts';

/** Detaches what a killed daemon has left mounted below a folder. */
export function unmountBelow(folder: string): void {
  if (!existsSync(folder)) return;
  const below = `${realpathSync(folder)}/`;
  for (const { path } of mountTable().toReversed()) if (path.startsWith(below)) unmount(path, { lazy: true });
}

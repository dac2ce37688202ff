import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { unmount } from '../../host/mounts/mount.ts';
import { hasCode } from '../../lib/errors.ts';

/**
 * Removes the folder of a shim that has ended. crun mounts its own program there for a moment: killed in it, its mount
 * stays on the host, unless its shim had a mount namespace of its own.
 */
export async function removeShimFolder(directory: string): Promise<void> {
  try {
    await rm(directory, { recursive: true, force: true });
  } catch (error) {
    if (!hasCode(error, 'EBUSY')) throw error;
    for (const name of await readdir(directory)) if (name.startsWith('crun.')) detach(join(directory, name));
    await rm(directory, { recursive: true, force: true });
  }
}

function detach(path: string): void {
  try {
    unmount(path, { lazy: true });
  } catch (error) {
    // It is not mounted, or the first removal, which goes on behind its failure, has removed it.
    if (!hasCode(error, 'EINVAL') && !hasCode(error, 'ENOENT')) throw error;
  }
}

import { mkdirSync, readdirSync } from 'node:fs';
import { rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import type { VolumeStore } from './store.ts';

/** How the folders of volumes begin that are on their way out; no volume's name does. */
export const TRASH = '.trash-';

/**
 * At the daemon's start: finishes removals, and gives every record its folder. A folder without a record that has files
 * in it stays: it may be all that is left of somebody's data.
 */
export async function reconcileVolumes(volumes: VolumeStore): Promise<void> {
  mkdirSync(volumes.directory, { recursive: true, mode: 0o711 });
  for (const name of readdirSync(volumes.directory)) {
    const folder = join(volumes.directory, name);
    if (name.startsWith(TRASH)) await rm(folder, { recursive: true, force: true });
    else if (volumes.get(name) === undefined) await removeIfEmpty(folder);
  }
  for (const { name } of volumes.all()) mkdirSync(volumes.mountpoint(name), { recursive: true });
}

/** A create that was cut off has made the folders alone. */
async function removeIfEmpty(folder: string): Promise<void> {
  for (const path of [join(folder, '_data'), folder]) {
    try {
      await rmdir(path);
    } catch (error) {
      if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'ENOTDIR')) throw error;
    }
  }
}

import { readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import { makeFolders } from '../lib/folders.ts';
import { TRASH, type VolumeStore } from './store.ts';

type Needs = { volumes: VolumeStore; log: { error(details: object, message: string): void } };

/** How earlier versions named the folders of volumes that were on their way out. */
const OLD_TRASH = '.trash-';

/**
 * At the daemon's start: finishes removals, and gives every record its folder. A folder without a record that has files
 * in it stays: it may be all that is left of somebody's data.
 */
export function reconcileVolumes({ volumes, log }: Needs): void {
  for (const name of readdirSync(volumes.directory)) {
    if (name === TRASH || volumes.isKnown(name)) continue;
    try {
      if (name.startsWith(OLD_TRASH)) volumes.discard(name);
      else removeIfEmpty(join(volumes.directory, name));
    } catch (error) {
      log.error({ err: error, volume: name }, 'the folder of a volume that is not there any more stays');
    }
  }
  for (const { name } of volumes.all()) {
    try {
      makeFolders(volumes.mountpoint(name), 0o755);
    } catch (error) {
      log.error({ err: error, volume: name }, 'a volume has no folder: containers with it will not start');
    }
  }
}

/** A create that was cut off has made the folders alone. */
function removeIfEmpty(folder: string): void {
  for (const path of [join(folder, '_data'), folder]) {
    try {
      rmdirSync(path);
    } catch (error) {
      if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'ENOTDIR')) throw error;
    }
  }
}

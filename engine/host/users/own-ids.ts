import { readFileSync } from 'node:fs';

import { isRootless } from '../rootless.ts';
import type { IdMap, IdRange } from './id-map.ts';

/** The ids that files can have for the daemon of an ordinary user. Undefined for root's daemon, which has them all. */
export const ownIds: IdMap | undefined = isRootless
  ? { uids: rangesIn('/proc/self/uid_map'), gids: rangesIn('/proc/self/gid_map') }
  : undefined;

/** The daemon is in the user namespace, so that ids inside and outside of a container are the same to it. */
function rangesIn(path: string): IdRange[] {
  return readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [inside = 0, , size = 0] = line.trim().split(/\s+/).map(Number);
      return { inside, outside: inside, size };
    });
}

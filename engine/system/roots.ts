import { chmodSync, chownSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { mappedRoot, type IdMap } from '../host/users/id-map.ts';
import { EngineError, hasCode } from '../lib/errors.ts';
import { makeFolders } from '../lib/folders.ts';

type Roots = Readonly<{ dataRoot: string; execRoot: string }>;

/** Files that an earlier version left readable for everyone. */
const FOLDERS = ['blobs', 'containers', 'layers', 'plugins', 'volumes', 'writable', 'runtime', 'runtimes', 'shims'];
const FILES = ['daemon-id', 'database.json', 'gantry.db', 'gantry.db-wal', 'gantry.db-shm', 'lock'];

/** The umask: other users may not open files that the daemon creates. Exceptions set their mode explicitly. */
export function hideNewFiles(): void {
  process.umask(0o077);
}

/**
 * Creates the daemon's roots.
 *
 * Only root may enter the data root: layers contain setuid root programs, which users of this machine must not run
 * outside of a container (CVE-2021-41091). The root of containers with a map passes through it, as with dockerd, and
 * finds all folders closed but those that their shims show. The exec root can be entered, because the default socket is below it.
 */
export function prepareRoots({ dataRoot, execRoot }: Roots, idMap?: IdMap): void {
  makeFolders(execRoot, 0o711);
  makeFolders(dataRoot, 0o710);
  chownSync(dataRoot, 0, idMap === undefined ? 0 : mappedRoot(idMap).gid);
  chmodSync(dataRoot, 0o710);
  if (idMap !== undefined) refuseClosedWay(dataRoot);
  for (const root of new Set([dataRoot, execRoot])) {
    for (const name of FOLDERS) close(join(root, name), 0o700);
    for (const name of FILES) close(join(root, name), 0o600);
  }
}

/** Throws `failed` where the containers' root cannot reach the data root, as dockerd does. */
function refuseClosedWay(dataRoot: string): void {
  for (let folder = dirname(realpathSync(dataRoot)); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) {
      throw new EngineError(
        'failed',
        `the folder ${folder} of the data root is closed to the users of containers: --userns-remap needs 'chmod o+x' on it`,
      );
    }
    if (folder === '/') return;
  }
}

function close(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

import { chmodSync, chownSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import { makeFolders } from '../lib/folders.ts';

type Roots = Readonly<{ dataRoot: string; execRoot: string }>;

/** What an earlier version has left open to everybody. */
const FOLDERS = ['blobs', 'containers', 'layers', 'volumes', 'writable', 'runtime', 'runtimes', 'shims'];
const FILES = ['daemon-id', 'database.json', 'gantry.db', 'gantry.db-wal', 'gantry.db-shm', 'lock'];

/** What local users may open of the files that the daemon makes from now on: nothing. Who needs more says so. */
export function hideNewFiles(): void {
  process.umask(0o077);
}

/**
 * Makes the daemon's roots.
 *
 * Nobody else gets into the data root: layers hold programs that are setuid root, and a user of this machine must not
 * run them outside of a container (CVE-2021-41091). The exec root is on the way to the default socket.
 */
export function prepareRoots({ dataRoot, execRoot }: Roots): void {
  makeFolders(execRoot, 0o711);
  makeFolders(dataRoot, 0o710);
  chownSync(dataRoot, 0, 0);
  chmodSync(dataRoot, 0o710);
  for (const root of new Set([dataRoot, execRoot])) {
    for (const name of FOLDERS) close(join(root, name), 0o700);
    for (const name of FILES) close(join(root, name), 0o600);
  }
}

function close(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

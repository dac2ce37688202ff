import { chmodSync, chownSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';
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
 * outside of a container (CVE-2021-41091). The exec root can be entered, because the default socket is below it.
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

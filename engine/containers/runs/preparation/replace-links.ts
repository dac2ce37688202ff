import { closeSync } from 'node:fs';

import { chmodAt, createFileAt, holdInRoot, mkdirAt, openRoot, typeAt, unlinkAt } from '../../../host/files/openat.ts';
import { TYPE } from '../../../layers/tar/node-attributes.ts';
import { hasCode } from '../../../lib/errors.ts';

const FOLDERS = ['proc', 'sys', 'dev'];
const FILES = ['hosts', 'hostname', 'resolv.conf'];

/**
 * Replaces links at the engine's own mount points by folders and empty files, as dockerd does in each container: an image
 * may have `/etc/resolv.conf` as a link into /run, or /proc.
 */
export function replaceLinks(root: string): void {
  using held = new DisposableStack();
  const top = held.adopt(openRoot(root), closeSync);
  for (const name of FOLDERS.filter((each) => isLink(top, each))) {
    unlinkAt(top, name);
    mkdirAt(top, name, 0o755);
    chmodAt(top, name, 0o755); // regardless of the daemon's umask
  }
  const etc = holdEtc(top);
  if (etc === undefined) return;
  held.adopt(etc, closeSync);
  for (const name of FILES.filter((each) => isLink(etc, each))) {
    unlinkAt(etc, name);
    closeSync(createFileAt(etc, name));
    chmodAt(etc, name, 0o755);
  }
}

function isLink(folder: number, name: string): boolean {
  return typeAt(folder, name) === TYPE.symlink;
}

function holdEtc(top: number): number | undefined {
  try {
    return holdInRoot(top, 'etc');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].some((code) => hasCode(error, code))) return undefined;
    throw error;
  }
}

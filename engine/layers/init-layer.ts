import { chmodSync, chownSync, closeSync, lstatSync, mkdirSync, openSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

import { isWhiteout } from './pack/layer-rules.ts';
import { folderBelow } from './tar/lower-folders.ts';

const FOLDERS = ['dev', 'dev/pts', 'dev/shm', 'proc', 'sys'];
const FILES = ['.dockerenv', 'dev/console'];
const ETC_FILES = ['etc/hostname', 'etc/hosts', 'etc/resolv.conf'];

/**
 * Fills the layer between an image and a container, as dockerd does: the mount points of a run, and `/.dockerenv`, which tells
 * programs that they run in a container. So they are there before the first start, and no change of the container.
 *
 * Folders have the attributes that they have in the image; `lower` are its folders, topmost first. Its other entries
 * are hidden, but for an /etc that is a link, because its files are needed.
 */
export function fillInitLayer(root: string, lower: readonly string[]): void {
  const hasEtc = !isOther(lower, 'etc');
  const folders = hasEtc ? [...FOLDERS, 'etc'] : FOLDERS;
  const files = hasEtc ? [...FILES, ...ETC_FILES] : FILES;
  for (const path of folders) mkdirSync(join(root, path));
  for (const path of files) {
    closeSync(openSync(join(root, path), 'wx'));
    chmodSync(join(root, path), 0o755); // regardless of the daemon's umask
  }
  if (hasEtc) symlinkSync('/proc/mounts', join(root, 'etc/mtab'));
  for (const path of folders) setAttributes(join(root, path), folderBelow(lower, path)); // last, because of the times
}

function setAttributes(path: string, image: ReturnType<typeof folderBelow>): void {
  if (image !== undefined) chownSync(path, Number(image.uid), Number(image.gid));
  chmodSync(path, image === undefined ? 0o755 : Number(image.mode & 0o7777n));
  if (image !== undefined) utimesSync(path, Number(image.mtimeNs) / 1e9, Number(image.mtimeNs) / 1e9);
}

/** Whether an image has something else than a folder under a name of its root. */
function isOther(lower: readonly string[], name: string): boolean {
  for (const folder of lower) {
    const found = lstatSync(join(folder, name), { throwIfNoEntry: false });
    if (found !== undefined) return !found.isDirectory() && !isWhiteout(found);
  }
  return false;
}

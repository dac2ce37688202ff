import { chmodAt, chownAt, mknodAt, readable, setXattrAt, type BytePath } from '../../host/files/openat.ts';
import { isRootless } from '../../host/rootless.ts';
import { hasCode } from '../../lib/errors.ts';
import { quotePath } from './entry-names.ts';
import { badArchive, type TarEntry } from './tar-header.ts';

/** The kinds of files in a mode. */
export const TYPE = {
  directory: 0o040000,
  charDevice: 0o020000,
  blockDevice: 0o060000,
  fifo: 0o010000,
  symlink: 0o120000,
} as const;

/** An archive must not set overlayfs attributes: a redirect, for example, shows a folder from somewhere else. */
const OVERLAY_XATTRS = ['trusted.overlay.', 'user.overlay.'];
/** The kernel's errors for a name or value that no file can have. */
const XATTR_REFUSALS = ['E2BIG', 'ERANGE', 'EINVAL', 'ENAMETOOLONG'];

/** Owner, mode and extended attributes of anything but a symbolic link. */
export function setNodeAttributes(directory: number, name: BytePath, entry: TarEntry): void {
  chownAt(directory, name, entry.uid, entry.gid);
  chmodAt(directory, name, entry.mode);
  setXattrs(directory, name, entry);
}

/** The extended attributes that this file system and this kind of file can have. */
export function setXattrs(directory: number, name: BytePath, entry: TarEntry): void {
  for (const [attribute, value] of entry.xattrs) {
    if (OVERLAY_XATTRS.some((prefix) => attribute.startsWith(prefix))) continue;
    try {
      setXattrAt(directory, name, attribute, value);
    } catch (error) {
      if (XATTR_REFUSALS.some((code) => hasCode(error, code)) || (hasCode(error, 'ENOSPC') && isLong(entry))) {
        const shownName = JSON.stringify(readable(attribute.slice(0, 80)));
        throw badArchive(`the attribute ${shownName} of ${quotePath(entry.path)} is too long or badly named`, error);
      }
      // Not every file system supports every kind, and links and nodes take no `user.` attributes. The file is
      // extracted without them.
      if (!hasCode(error, 'EOPNOTSUPP') && !hasCode(error, 'ENOTSUP') && !hasCode(error, 'EPERM')) throw error;
    }
  }
}

/** On ext4 all attributes of a file have to fit into one block; otherwise it reports ENOSPC. */
function isLong({ xattrs }: TarEntry): boolean {
  return [...xattrs].reduce((bytes, [name, value]) => bytes + name.length + value.length, 0) > 2048;
}

/** Returns whether it was made: users make no devices, so a daemon of theirs leaves them out, as dockerd's does.
 *
 * A device whose numbers the kernel can represent; the numbers of a FIFO are ignored. */
export function makeNode(
  { path, mode, major, minor }: TarEntry,
  type: 'charDevice' | 'blockDevice' | 'fifo',
  directory: number,
  name: BytePath,
): boolean {
  if (type === 'fifo') {
    mknodAt(directory, name, TYPE.fifo | mode, 0, 0);
    return true;
  }
  const fits = major >= 0 && major < 2 ** 12 && minor >= 0 && minor < 2 ** 20;
  if (!fits) throw badArchive(`${quotePath(path)} has the device number ${major}:${minor}`);
  if (isRootless) return false;
  mknodAt(directory, name, TYPE[type] | mode, major, minor);
  return true;
}

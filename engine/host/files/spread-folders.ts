import { hasCode } from '../../lib/errors.ts';
import { check } from '../libc.ts';
import { ioctl, onFolder } from './folder-ioctl.ts';

const FS_IOC_GETFLAGS = 0x80086601;
const FS_IOC_SETFLAGS = 0x40086602;
const TOP_OF_TREES = 0x20000;
const UNKNOWN_HERE = ['EOPNOTSUPP', 'ENOTTY', 'ENOSYS'];

/**
 * Tells ext4 that the folders which will be in this one have nothing to do with each other (`chattr +T`), so that each gets a
 * place of its own on the disk. Near to each other they would share their inodes: without a journal, as in many small virtual
 * machines, ext4 looks for each new file at all inodes there that were freed within the last minute.
 *
 * Other file systems know no such flag.
 */
export function spreadFoldersIn(folder: string): void {
  onFolder(folder, (fd) => {
    const flags = Buffer.alloc(8);
    try {
      check(ioctl(fd, FS_IOC_GETFLAGS, flags), 'ioctl', ['FS_IOC_GETFLAGS', folder]);
      flags.writeUInt32LE((flags.readUInt32LE(0) | TOP_OF_TREES) >>> 0, 0);
      check(ioctl(fd, FS_IOC_SETFLAGS, flags), 'ioctl', ['FS_IOC_SETFLAGS', folder]);
    } catch (error) {
      if (!UNKNOWN_HERE.some((code) => hasCode(error, code))) throw error;
    }
  });
}

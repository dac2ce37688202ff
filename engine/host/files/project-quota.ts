import { bind, check } from '../libc.ts';
import { ioctl, onFolder } from './folder-ioctl.ts';

const syscall = bind<[number, number, number, number, Buffer], number>(
  'long syscall(long number, unsigned int fd, unsigned int command, unsigned int id, uint8_t *argument)',
);

/** Number of the system call on every architecture; Linux 5.14. */
const QUOTACTL_FD = 443;
const FS_IOC_FSGETXATTR = 0x801c581f;
export const FS_IOC_FSSETXATTR = 0x401c5820;
/** struct fsxattr: u32 flags, extent size, extents, project; 12 more bytes. */
const ATTRIBUTES = { bytes: 28, flags: 0, project: 12 } as const;
const INHERIT_PROJECT = 0x200;

/**
 * Q_SETQUOTA of projects. struct if_dqblk: u64 hard limit in KiB, u64 soft limit, and more; u32 which fields are valid.
 */
const SET_PROJECT_QUOTA = (0x800008 << 8) | 2;
const QUOTA = { bytes: 72, hardKib: 0, valid: 64 } as const;
const BLOCK_LIMITS = 1;

/** The project of a folder; 0 is none. */
export function projectOf(folder: string): number {
  return onFolder(folder, (fd) => attributesOf(fd, folder).readUInt32LE(ATTRIBUTES.project));
}

/** Makes an empty folder, and all its future content, part of a project. */
export function setProject(folder: string, project: number): void {
  onFolder(folder, (fd) => {
    const attributes = attributesOf(fd, folder);
    const flags = attributes.readUInt32LE(ATTRIBUTES.flags) | INHERIT_PROJECT;
    attributes.writeUInt32LE(flags >>> 0, ATTRIBUTES.flags); // the highest bit is one of them
    attributes.writeUInt32LE(project, ATTRIBUTES.project);
    check(ioctl(fd, FS_IOC_FSSETXATTR, attributes), 'ioctl', ['FS_IOC_FSSETXATTR', folder, project]);
  });
}

/**
 * Limits the size of a project's files, on the file system of `folder`; 0 is no limit. Rounded up to KiB.
 *
 * Throws `ESRCH`, `ENOSYS` or another error if the file system lacks project quotas.
 */
export function limitProject(folder: string, project: number, bytes: number): void {
  const quota = Buffer.alloc(QUOTA.bytes);
  quota.writeBigUInt64LE(BigInt(Math.ceil(bytes / 1024)), QUOTA.hardKib);
  quota.writeUInt32LE(BLOCK_LIMITS, QUOTA.valid);
  onFolder(folder, (fd) => {
    const result = syscall(QUOTACTL_FD, fd, SET_PROJECT_QUOTA >>> 0, project, quota);
    check(result, 'quotactl_fd', [folder, project, bytes]);
  });
}

function attributesOf(fd: number, folder: string): Buffer {
  const attributes = Buffer.alloc(ATTRIBUTES.bytes);
  check(ioctl(fd, FS_IOC_FSGETXATTR, attributes), 'ioctl', ['FS_IOC_FSGETXATTR', folder]);
  return attributes;
}

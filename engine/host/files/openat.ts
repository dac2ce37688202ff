import { bind, check, hasFailedWith, refusal, SystemError } from '../libc.ts';
import { deviceNumber } from './device-nodes.ts';

/**
 * Paths here are byte strings: each character is one byte (latin1), because file names of archives need not be UTF-8.
 * They are resolved below an open folder, and never leave it.
 */
export type BytePath = string;

const SYS_OPENAT2 = 437;
const O = {
  wronly: 1,
  creat: 0o100,
  excl: 0o200,
  nonblock: 0o4000,
  directory: process.arch === 'arm64' ? 0o40000 : 0o200000,
  nofollow: process.arch === 'arm64' ? 0o100000 : 0o400000,
  cloexec: 0o2000000,
  path: 0o10000000,
} as const;
const RESOLVE = { noMagicLinks: 2, beneath: 8, inRoot: 16 } as const;
const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_REMOVEDIR = 0x200;
const STATX_TYPE = 1;
/** `struct statx`, in words of 16 bits, and the place of `stx_mode` in it. */
const [STATX_WORDS, STATX_MODE_AT] = [128, 14];
const [TYPE_BITS, TYPE_FILE] = [0o170000, 0o100000];

type CString = Buffer;

const openat2 = bind<[number, number, CString, BigUint64Array, number], number>(
  'long syscall(long number, int dirfd, const uint8_t *path, const uint64_t *how, size_t size)',
);
const openat = bind<[number, CString, number, number], number>(
  'int openat(int dirfd, const uint8_t *path, int flags, uint32_t mode)',
);
const statx = bind<[number, CString, number, number, Uint16Array], number>(
  'int statx(int dirfd, const uint8_t *path, int flags, uint32_t mask, uint16_t *attributes)',
);
const attributes = new Uint16Array(STATX_WORDS);
const mkdirat = bind<[number, CString, number], number>('int mkdirat(int dirfd, const uint8_t *path, uint32_t mode)');
const symlinkat = bind<[CString, number, CString], number>(
  'int symlinkat(const uint8_t *target, int dirfd, const uint8_t *path)',
);
const linkat = bind<[number, CString, number, CString, number], number>(
  'int linkat(int from, const uint8_t *path, int to, const uint8_t *name, int flags)',
);
const unlinkat = bind<[number, CString, number], number>('int unlinkat(int dirfd, const uint8_t *path, int flags)');
const mknodat = bind<[number, CString, number, bigint], number>(
  'int mknodat(int dirfd, const uint8_t *path, uint32_t mode, uint64_t device)',
);
const fchownat = bind<[number, CString, number, number, number], number>(
  'int fchownat(int dirfd, const uint8_t *path, uint32_t uid, uint32_t gid, int flags)',
);
const fchmodat = bind<[number, CString, number, number], number>(
  'int fchmodat(int dirfd, const uint8_t *path, uint32_t mode, int flags)',
);
const utimensat = bind<[number, CString, BigInt64Array, number], number>(
  'int utimensat(int dirfd, const uint8_t *path, const int64_t *times, int flags)',
);
const futimens = bind<[number, BigInt64Array], number>('int futimens(int fd, const int64_t *times)');
const lsetxattr = bind<[CString, CString, Buffer, number, number], number>(
  'int lsetxattr(const uint8_t *path, const uint8_t *name, const void *value, size_t size, int flags)',
);
const fchown = bind<[number, number, number], number>('int fchown(int fd, uint32_t uid, uint32_t gid)');
const fchmod = bind<[number, number], number>('int fchmod(int fd, uint32_t mode)');

/** A point in time in the kernel's form. */
export type Timespec = { seconds: number; nanoseconds: number };

/** Holds a folder open as the root of further calls; closed by `closeSync`. */
export function openRoot(path: string): number {
  return check(openat(-1, cstring(Buffer.from(path).toString('latin1')), O.path | O.directory | O.cloexec, 0), 'open', [
    path,
  ]);
}

/**
 * Opens a folder below `root`. Links on the way are followed while they stay below; one that leads out, or is absolute,
 * gives `EXDEV`.
 */
export function openDirectoryBeneath(root: number, path: BytePath): number {
  return openResolved(root, path, O.path | O.directory, RESOLVE.beneath);
}

/** Opens a folder as a process whose root is `root` would find it: absolute links and `..` stay below. */
export function openDirectoryInRoot(root: number, path: BytePath): number {
  return openResolved(root, path, O.path | O.directory, RESOLVE.inRoot);
}

/** Like `openDirectoryInRoot`, but of any type. It uses O_PATH, so opening has no effect on a device or a FIFO. */
export function holdInRoot(root: number, path: BytePath): number {
  return openResolved(root, path, O.path, RESOLVE.inRoot);
}

function openResolved(root: number, path: BytePath, flags: number, resolve: number): number {
  const how = new BigUint64Array([BigInt(flags | O.cloexec), 0n, BigInt(resolve | RESOLVE.noMagicLinks)]);
  for (;;) {
    const fd = openat2(SYS_OPENAT2, root, cstring(path === '' ? '.' : path), how, how.byteLength);
    if (fd >= 0) return fd;
    try {
      check(fd, 'openat2', [readable(path)]);
    } catch (error) {
      // The kernel answers this when a rename meanwhile may have moved the path out of the root.
      if (error instanceof SystemError && error.code === 'EAGAIN') continue;
      throw error;
    }
  }
}

/** Holds the entry of this name open, of any type and without effect on it; a link itself, not its target. */
export function holdAt(directory: number, name: BytePath): number {
  return check(openat(directory, cstring(name), O.path | O.nofollow | O.cloexec, 0), 'openat', [readable(name)]);
}

/** Creates a new file for writing. Throws `EEXIST` when the name exists, even as a link. */
export function createFileAt(directory: number, name: BytePath): number {
  const flags = O.wronly | O.creat | O.excl | O.nofollow | O.cloexec;
  return check(openat(directory, cstring(name), flags, 0o600), 'openat', [readable(name)]);
}

/**
 * Opens a plain file for reading. Anything else is refused before it is opened, because opening a device has effects;
 * a link is not followed.
 */
export function openFileAt(directory: number, name: BytePath): number {
  const type = typeAt(directory, name);
  if (type !== undefined && type !== TYPE_FILE) throw new Error(`not a plain file: ${readable(name)}`);
  // Should another kind have taken its place meanwhile, this does not wait for the other end of a FIFO.
  const fd = openat(directory, cstring(name), O.nonblock | O.nofollow | O.cloexec, 0);
  if (fd < 0) throw refusal('openat', [readable(name)]);
  return fd;
}

/** The type bits of the entry of this name, without following a link; undefined if there is none. */
export function typeAt(directory: number, name: BytePath): number | undefined {
  const result = statx(directory, cstring(name), AT_SYMLINK_NOFOLLOW, STATX_TYPE, attributes);
  if (result >= 0) return attributes[STATX_MODE_AT]! & TYPE_BITS;
  const error = refusal('statx', [readable(name)]);
  if (error.code === 'ENOENT') return undefined;
  throw error;
}

export function mkdirAt(directory: number, name: BytePath, mode: number): void {
  check(mkdirat(directory, cstring(name), mode), 'mkdirat', [readable(name)]);
}

export function symlinkAt(target: BytePath, directory: number, name: BytePath): void {
  check(symlinkat(cstring(target), directory, cstring(name)), 'symlinkat', [readable(target), readable(name)]);
}

/** Creates a hard link; for a symbolic link, to the link itself. */
export function linkAt(from: number, path: BytePath, to: number, name: BytePath): void {
  check(linkat(from, cstring(path), to, cstring(name), 0), 'linkat', [readable(path), readable(name)]);
}

export function unlinkAt(directory: number, name: BytePath): void {
  check(unlinkat(directory, cstring(name), 0), 'unlinkat', [readable(name)]);
}

/** Like `unlinkAt`; returns false for a missing entry, which costs no error then. */
export function unlinkIfThere(directory: number, name: BytePath): boolean {
  const result = unlinkat(directory, cstring(name), 0);
  if (result < 0 && hasFailedWith('ENOENT')) return false;
  check(result, 'unlinkat', [readable(name)]);
  return true;
}

/** Removes an empty folder. */
export function rmdirAt(directory: number, name: BytePath): void {
  check(unlinkat(directory, cstring(name), AT_REMOVEDIR), 'unlinkat', [readable(name)]);
}

/** Makes a device node, a fifo or a socket; `mode` carries the type bits. */
export function mknodAt(directory: number, name: BytePath, mode: number, major: number, minor: number): void {
  const device = deviceNumber(major, minor);
  check(mknodat(directory, cstring(name), mode, device), 'mknodat', [readable(name), mode, major, minor]);
}

export function chownAt(directory: number, name: BytePath, uid: number, gid: number): void {
  check(fchownat(directory, cstring(name), uid, gid, AT_SYMLINK_NOFOLLOW), 'fchownat', [readable(name), uid, gid]);
}

/** Follows a link, because Linux has no other way: only for names that are known not to be links. */
export function chmodAt(directory: number, name: BytePath, mode: number): void {
  check(fchmodat(directory, cstring(name), mode, 0), 'fchmodat', [readable(name), mode]);
}

export function setTimesAt(directory: number, name: BytePath, time: Timespec): void {
  check(utimensat(directory, cstring(name), timesOf(time), AT_SYMLINK_NOFOLLOW), 'utimensat', [readable(name)]);
}

/** Sets an extended attribute of the entry of this name, without following a link. */
export function setXattrAt(directory: number, name: BytePath, attribute: BytePath, value: Buffer): void {
  // The path through /proc leads to the open folder, even if it was moved.
  const path = cstring(`/proc/self/fd/${directory}/${name}`);
  check(lsetxattr(path, cstring(attribute), value, value.length, 0), 'lsetxattr', [readable(name), attribute]);
}

/** Sets owner, mode and times of an open file, in this order because a chown clears setuid. */
export function setAttributes(
  fd: number,
  { uid, gid, mode, mtime }: { uid: number; gid: number; mode: number; mtime: Timespec },
): void {
  check(fchown(fd, uid, gid), 'fchown', [uid, gid]);
  check(fchmod(fd, mode), 'fchmod', [mode]);
  check(futimens(fd, timesOf(mtime)), 'futimens', [mtime]);
}

/** The name for people: UTF-8, with a replacement character for every invalid byte. */
export function readable(path: BytePath): string {
  return Buffer.from(path, 'latin1').toString('utf8');
}

function cstring(path: BytePath): CString {
  return Buffer.from(`${path}\0`, 'latin1');
}

/** Access time and modification time. */
function timesOf({ seconds, nanoseconds }: Timespec): BigInt64Array {
  const times = new BigInt64Array(4);
  times[0] = times[2] = BigInt(seconds);
  times[1] = times[3] = BigInt(nanoseconds);
  return times;
}

import { chmodSync, constants, openSync, readdirSync, readFileSync } from 'node:fs';

import { bind, check, refusal } from '../libc.ts';
import type { BytePath } from './openat.ts';

const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
/** The kernel's limits for a link's target, and for one attribute or the list of their names. */
const MAX_TARGET = 4096;
const MAX_XATTR = 65_536;
const SYS_OPENAT2 = 437;
const RESOLVE_NO_XDEV = 1;
const RESOLVE_NO_SYMLINKS = 4;
const AT_EMPTY_PATH = 0x1000;
const SEEK = { data: 3, hole: 4 } as const;

const openat = bind<[number, Buffer, number], number>('int openat(int dirfd, const uint8_t *path, int flags)');
const openat2 = bind<[number, number, Buffer, BigUint64Array, number], number>(
  'long syscall(long number, int dirfd, const uint8_t *path, const uint64_t *how, size_t size)',
);
const fchownat = bind<[number, string, number, number, number], number>(
  'int fchownat(int dirfd, const char *path, uint32_t uid, uint32_t gid, int flags)',
);
const readlinkat = bind<[number, string, Buffer, number], number>(
  'int64_t readlinkat(int dirfd, const char *path, void *target, size_t size)',
);
const getxattr = bind<[string, string, Buffer, number], number>(
  'int64_t getxattr(const char *path, const char *name, void *value, size_t size)',
);
const listxattr = bind<[string, Buffer, number], number>(
  'int64_t listxattr(const char *path, void *list, size_t size)',
);
const lseek = bind<[number, number, number], number>('int64_t lseek(int fd, int64_t offset, int whence)');

// Synchronous calls only, so that one buffer of each thread serves all of them.
const buffer = Buffer.alloc(MAX_XATTR);

/**
 * Holds the entry of this name, of any type, without opening it: a device or a FIFO is not affected, a link is held
 * itself. The descriptor always refers to the same entry.
 */
export function holdAt(directory: number, name: BytePath): number {
  const flags = O_PATH | O_CLOEXEC | constants.O_NOFOLLOW;
  const path = Buffer.from(`${name}\0`, 'latin1');
  return check(openat(directory, path, flags), 'openat', [Buffer.from(name, 'latin1').toString()]);
}

/** Opens a held file for reading. To be called for files only. */
export function openHeld(held: number): number {
  return openSync(`/proc/self/fd/${held}`, constants.O_RDONLY | constants.O_NONBLOCK);
}

/** Owner, then mode, because a chown clears setuid. Not for links, which have no mode. */
export function setOwnerAndMode(held: number, { uid, gid, mode }: { uid: number; gid: number; mode: number }): void {
  check(fchownat(held, '', uid, gid, AT_EMPTY_PATH), 'fchownat', [held, uid, gid]);
  // Through the descriptor, because a name could be a link by now, and Linux follows it.
  chmodSync(`/proc/self/fd/${held}`, mode);
}

/** An entry that is mounted on, or is on another mount than its folder, gives `EXDEV`. */
export function holdOnSameMount(directory: number, name: BytePath): number {
  const flags = BigInt(O_PATH | O_CLOEXEC | constants.O_NOFOLLOW);
  const how = new BigUint64Array([flags, 0n, BigInt(RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS)]);
  const path = Buffer.from(`${name}\0`, 'latin1');
  const fd = openat2(SYS_OPENAT2, directory, path, how, how.byteLength);
  return check(fd, 'openat2', [Buffer.from(name, 'latin1').toString()]);
}

/** Which mount a descriptor is on. */
export function mountIdOf(fd: number): string {
  const info = readFileSync(`/proc/thread-self/fdinfo/${fd}`, 'utf8');
  return /^mnt_id:\s*(\d+)/m.exec(info)?.[1] ?? '';
}

/** The names in a held folder, in the order of their bytes. */
export function namesIn(held: number): BytePath[] {
  return readdirSync(`/proc/self/fd/${held}`, 'latin1').toSorted(byBytes);
}

function byBytes(a: BytePath, b: BytePath): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** The target of a held link. */
export function targetOf(held: number): BytePath {
  const size = check(readlinkat(held, '', buffer, MAX_TARGET), 'readlinkat', [held]);
  return buffer.toString('latin1', 0, size);
}

/** The names of the extended attributes of a held entry; none on a file system without them. */
export function xattrNamesOf(held: number): BytePath[] {
  const size = listxattr(`/proc/self/fd/${held}`, buffer, buffer.length);
  if (size === 0) return [];
  if (size > 0) return buffer.toString('latin1', 0, size - 1).split('\0');
  const error = refusal('listxattr', [held]);
  if (error.code === 'EOPNOTSUPP' || error.code === 'ENOTSUP' || error.code === 'EACCES') return [];
  throw error;
}

/** The value of one; undefined if it is gone. */
export function xattrOf(held: number, name: string): Buffer | undefined {
  const size = getxattr(`/proc/self/fd/${held}`, name, buffer, buffer.length);
  if (size >= 0) return Buffer.from(buffer.subarray(0, size));
  const error = refusal('getxattr', [held, name]);
  if (['ENODATA', 'EOPNOTSUPP', 'ENOTSUP', 'EPERM', 'EACCES'].includes(error.code)) return undefined;
  throw error;
}

/** The parts of an open file that are not holes. */
export function* dataOf(fd: number, sizeBytes: number): Generator<{ offset: number; bytes: number }> {
  for (let at = 0; at < sizeBytes;) {
    const offset = lseek(fd, at, SEEK.data);
    if (offset < 0) {
      const error = refusal('lseek', [fd, at]);
      if (error.code === 'ENXIO') return; // only a hole is left
      throw error;
    }
    const end = Math.min(sizeBytes, check(lseek(fd, offset, SEEK.hole), 'lseek', [fd, offset]));
    if (end <= offset) return;
    yield { offset, bytes: end - offset };
    at = end;
  }
}

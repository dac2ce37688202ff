import { statfsSync } from 'node:fs';

/** `f_type` of the file systems that the engine treats specially. */
const MAGIC: Readonly<Record<number, string>> = {
  0x01021994: 'tmpfs',
  0xef53: 'ext',
  0x58465342: 'xfs',
  0x9123683e: 'btrfs',
  0x794c7630: 'overlay',
  0x2fc12fc1: 'zfs',
  0x63677270: 'cgroup2',
  0x27e0eb: 'cgroup',
  0x6969: 'nfs',
  0x9fa0: 'proc',
  0x65735546: 'fuse',
};

/** The file system of `path`: its type (hexadecimal if unknown), its size and its free space. */
export function filesystemOf(path: string): { kind: string; totalBytes: number; freeBytes: number } {
  const { type, bsize, blocks, bavail } = statfsSync(path);
  // The kernel's f_type is 32 bits wide; some come sign-extended.
  const magic = Number(BigInt.asUintN(32, BigInt(type)));
  return {
    kind: MAGIC[magic] ?? `0x${magic.toString(16)}`,
    totalBytes: blocks * bsize,
    freeBytes: bavail * bsize,
  };
}

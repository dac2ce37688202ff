import { bind, refusal } from '../libc.ts';

const statfs = bind<[string, Buffer], number>('int statfs(const char *path, void *buffer)');

const SIZE_BYTES = 120;
/** In the kernel's `struct statfs`, on 64 bits. */
const FLAGS_OFFSET = 80;
const FLAGS = { ro: 1, nosuid: 2, nodev: 4, noexec: 8, noatime: 0x400, nodiratime: 0x800 } as const;

const buffer = Buffer.alloc(SIZE_BYTES);

/** The restrictions of the mount that holds a path, in the words of `mount -o`; none for a missing path. */
export function flagsOfMount(path: string): string[] {
  if (statfs(path, buffer) < 0) {
    const error = refusal('statfs', [path]);
    if (error.code === 'ENOENT') return [];
    throw error;
  }
  const flags = Number(buffer.readBigUInt64LE(FLAGS_OFFSET));
  return Object.entries(FLAGS).flatMap(([word, bit]) => ((flags & bit) === 0 ? [] : [word]));
}

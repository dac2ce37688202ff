import { bind, check } from '../libc.ts';

const mknodCall = bind<[string, number, bigint], number>('int mknod(const char *path, uint32_t mode, uint64_t device)');

const TYPE = { fifo: 0o010000, char: 0o020000, block: 0o060000, socket: 0o140000 } as const;

type NodeKind = keyof typeof TYPE;

export type NodeSpec = Readonly<{
  kind: NodeKind;
  /** Permissions, subject to the umask: the caller sets them again where it matters. */
  mode: number;
  /** For char and block devices only. */
  major?: number;
  minor?: number;
}>;

/** Makes a device node, a fifo or a socket's name. Throws `EEXIST`, `EPERM` (no CAP_MKNOD), … */
export function makeNode(path: string, { kind, mode, major = 0, minor = 0 }: NodeSpec): void {
  check(mknodCall(path, TYPE[kind] | (mode & 0o7777), deviceNumber(major, minor)), 'mknod', [
    path,
    kind,
    mode.toString(8),
    major,
    minor,
  ]);
}

/** The kernel's `dev_t`, which `stat` calls `rdev`. */
export function deviceNumber(major: number, minor: number): bigint {
  const [high, low] = [BigInt(major), BigInt(minor)];
  return (low & 0xffn) | ((high & 0xfffn) << 8n) | ((low & ~0xffn) << 12n) | ((high & ~0xfffn) << 32n);
}

export function deviceMajor(device: bigint): number {
  return Number(((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn));
}

export function deviceMinor(device: bigint): number {
  return Number((device & 0xffn) | ((device >> 12n) & ~0xffn & 0xffffffffn));
}

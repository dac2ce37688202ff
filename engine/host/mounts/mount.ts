import { setImmediate } from 'node:timers/promises';

import { bind, check } from '../libc.ts';
import { isRootless } from '../rootless.ts';

const MS = {
  ro: 1,
  nosuid: 2,
  nodev: 4,
  noexec: 8,
  remount: 0x20,
  noatime: 0x400,
  bind: 0x1000,
  recursive: 0x4000,
  relatime: 0x200000,
} as const;

const PROPAGATION = { unbindable: 1 << 17, private: 1 << 18, slave: 1 << 19, shared: 1 << 20 } as const;

const MNT_DETACH = 2;
const UMOUNT_NOFOLLOW = 8;
/** The kernel copies one page of options and silently cuts off the rest. */
const PAGE_BYTES = 4096;

type MountFlag = 'ro' | 'nosuid' | 'nodev' | 'noexec' | 'noatime' | 'relatime';
export type Propagation = keyof typeof PROPAGATION;

const mount = bind<[string, string, string | null, bigint, string | null], number>(
  'int mount(const char *source, const char *target, const char *type, uint64_t flags, const char *options)',
);
const umount2 = bind<[string, number], number>('int umount2(const char *target, int flags)');

/** Mounts a file system of `type`; `options` are its own, such as `size=64m` of a tmpfs. */
function mountFilesystem(
  type: string,
  source: string,
  target: string,
  { flags = [], options = '' }: { flags?: readonly MountFlag[]; options?: string } = {},
): void {
  const values = [source, target, type, flags.join(','), options];
  if (Buffer.byteLength(options) >= PAGE_BYTES) {
    throw new RangeError(`mount of ${type} on ${target}: ${options.length} bytes of options; the limit is one page`);
  }
  check(mount(source, target, type, bits(flags), options === '' ? null : options), 'mount', values);
}

export type Overlay = Readonly<{
  /** Top first. Names with `:`, `,` or `\` are escaped here. */
  lower: readonly string[];
  upper?: string;
  work?: string;
  target: string;
  options?: readonly string[];
}>;

/** Mounts an overlay; without `upper` it is read-only. Relative names count from the working directory. */
export function mountOverlay({ target, options = [], ...folders }: Overlay): void {
  mountFilesystem('overlay', 'overlay', target, { options: [overlayFolders(folders), ...options].join(',') });
}

/** The folders as options of a mount. */
export function overlayFolders({ lower, upper, work }: Pick<Overlay, 'lower' | 'upper' | 'work'>): string {
  const parts = [`lowerdir=${lower.map(escapeLower).join(':')}`, ...(isRootless ? ['userxattr'] : [])];
  if (upper !== undefined && work !== undefined) {
    parts.push(`upperdir=${escapeOption(upper)}`, `workdir=${escapeOption(work)}`);
  }
  return parts.join(',');
}

/** Mounts an empty memory file system that takes `sizeBytes` at most. */
export function mountTmpfs(target: string, sizeBytes: number, mode = 0o755): void {
  mountFilesystem('tmpfs', 'tmpfs', target, {
    flags: ['nosuid', 'nodev'],
    options: `size=${sizeBytes},mode=${mode.toString(8)}`,
  });
}

/** Makes `source` appear at `target` as well; `recursive` includes the mounts below it. */
export function mountBind(
  source: string,
  target: string,
  { recursive = false, readOnly = false }: { recursive?: boolean; readOnly?: boolean } = {},
): void {
  const flags = MS.bind | (recursive ? MS.recursive : 0);
  check(mount(source, target, null, BigInt(flags), null), 'mount', [source, target, 'bind']);
  if (!readOnly) return;
  // The first call of a bind ignores every other flag: read-only takes a second one.
  const readOnlyFlags = BigInt(MS.remount | MS.bind | MS.ro);
  check(mount('none', target, null, readOnlyFlags, null), 'mount', [target, 'remount,bind,ro']);
}

/** Sets whether mounts below `target` propagate to, or come from, its copies in other namespaces. */
export function setPropagation(target: string, propagation: Propagation, { recursive = false } = {}): void {
  const flags = BigInt(PROPAGATION[propagation] | (recursive ? MS.recursive : 0));
  check(mount('none', target, null, flags, null), 'mount', [target, propagation]);
}

type UnmountOptions = {
  /** Detached at once; removed with its last user. */
  lazy?: boolean;
};

/** Unmounts on this thread, for mounts known to be small. A busy mount throws `EBUSY`. */
export function unmount(target: string, { lazy = false }: UnmountOptions = {}): void {
  check(umount2(target, unmountFlags(lazy)), 'umount2', [target, lazy ? 'detach' : '']);
}

/** Unmounts on another thread: flushing the last writes of a large tree can take the disk seconds. */
export async function unmountInBackground(target: string, { lazy = false }: UnmountOptions = {}): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  umount2.async(target, unmountFlags(lazy), (error, result) => (error === null ? resolve(result) : reject(error)));
  if ((await promise) >= 0) return;
  // errno belongs to the other thread; a refusal is immediate, so the call is repeated here to learn the reason.
  await setImmediate();
  unmount(target, { lazy });
}

function unmountFlags(lazy: boolean): number {
  // Never through a symbolic link: below a container's root its owner could have placed one.
  return UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0);
}

function bits(flags: readonly MountFlag[]): bigint {
  return BigInt(flags.reduce((all, flag) => all | MS[flag], 0));
}

function escapeOption(path: string): string {
  return path.replace(/[\\,]/g, String.raw`\$&`);
}

function escapeLower(path: string): string {
  return path.replace(/[\\,:]/g, String.raw`\$&`);
}

import { closeSync, constants, mkdirSync, openSync, realpathSync, rmdirSync } from 'node:fs';
import { constants as osConstants } from 'node:os';

import { hasCode } from '../../lib/errors.ts';
import { bind, check, SystemError } from '../libc.ts';
import { enter, unshare } from '../namespaces.ts';
import { mountTable } from './mount-table.ts';
import { mountTmpfs } from './mount.ts';

const SYS_OPEN_TREE = 428;
const SYS_MOVE_MOUNT = 429;
const OPEN_TREE_CLONE = 1;
const CLOSE_ON_EXEC = 0o2000000;
const AT_RECURSIVE = 0x8000;
const HERE = -100;
/** Both ends are descriptors, not paths. */
const MOVE_BY_DESCRIPTORS = 0x04 | 0x40;
const SYS_MOUNT_SETATTR = 442;
const AT_EMPTY_PATH = 0x1000;
const ATTRIBUTES = { ro: 1, nosuid: 2, nodev: 4, noexec: 8, noatime: 0x10 } as const;
/** All kinds of access times: one kind can only be set where the others are cleared. */
const ACCESS_TIMES = 0x70;
const MS_PRIVATE = 1 << 18;
const MS_SLAVE_ALL = (1 << 19) | 0x4000;
const MNT_DETACH = 2;
/** For empty folders. */
const PLACES_BYTES = 64 * 1024;

const openTreeCall = bind<[number, number, string, number], number>(
  'long syscall(long number, int dirfd, const char *path, unsigned int flags)',
);
const moveMountCall = bind<[number, number, string, number, string, number], number>(
  'long syscall(long number, int from, const char *path, int to, const char *target, unsigned int flags)',
);
const mount = bind<[string, string, null, bigint, null], number>(
  'int mount(const char *source, const char *target, const char *type, uint64_t flags, const char *options)',
);
const mountSetAttributes = bind<[number, number, string, number, BigUint64Array, number], number>(
  'long syscall(long number, int dirfd, const char *path, unsigned int flags, const uint64_t *attributes, size_t size)',
);
const umount2 = bind<[string, number], number>('int umount2(const char *target, int flags)');
const fchdir = bind<[number], number>('int fchdir(int fd)');
const chroot = bind<[string], number>('int chroot(const char *path)');

type TreeFlag = keyof typeof ATTRIBUTES;

/** A copy of a mount of this thread's namespace, mounted nowhere yet; gone when the descriptor is closed before that. */
export function cloneMount(path: string, { recursive = false } = {}): number {
  const flags = OPEN_TREE_CLONE | CLOSE_ON_EXEC | (recursive ? AT_RECURSIVE : 0);
  return check(openTreeCall(SYS_OPEN_TREE, HERE, path, flags), 'open_tree', [path]);
}

/** Mounts a copy on an open file or folder. The descriptor stays that of the mount. */
export function attachMount(tree: number, place: number): void {
  check(moveMountCall(SYS_MOVE_MOUNT, tree, '', place, '', MOVE_BY_DESCRIPTORS), 'move_mount', [tree, place]);
}

/**
 * Adds flags to a mount and all below it, by its descriptor, and takes it out of the group of its peers: mounts and
 * unmounts on it are not visible elsewhere. In a user namespace, a mount of the machine keeps its kind of access times.
 */
export function restrictMount(tree: number, flags: readonly TreeFlag[], { recursive = true } = {}): void {
  try {
    setFlags(tree, flags, recursive);
  } catch (error) {
    if (!hasCode(error, 'EPERM') || !flags.includes('noatime')) throw error;
    setFlags(
      tree,
      flags.filter((flag) => flag !== 'noatime'),
      recursive,
    );
  }
}

function setFlags(tree: number, flags: readonly TreeFlag[], recursive: boolean): void {
  const set = flags.reduce((all, flag) => all | ATTRIBUTES[flag], 0);
  const cleared = flags.includes('noatime') ? ACCESS_TIMES : 0;
  const attributes = new BigUint64Array([BigInt(set), BigInt(cleared), BigInt(MS_PRIVATE), 0n]);
  const how = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);
  const result = mountSetAttributes(SYS_MOUNT_SETATTR, tree, '', how, attributes, attributes.byteLength);
  check(result, 'mount_setattr', [tree, flags.join(',')]);
}

/** The kernel gives `EACCES` to root while a process ends: it has no memory any more, and nearly is no process. */
function openNamespace(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (!hasCode(error, 'EACCES')) throw error;
    throw new SystemError('open', [path], osConstants.errno.ENOENT);
  }
}

/**
 * A mount namespace of this thread alone, from which it can visit others for a moment. Not for the main thread, whose
 * namespace is that of the process.
 */
export class ThreadMounts implements Disposable {
  readonly #processNamespace: number;
  readonly #processRoot: number;
  readonly #ownNamespace: number;
  readonly #ownRoot: number;
  readonly #places: string;
  #lastPlace = 0;

  /**
   * Mounts below `hidden` are dropped from the copy, so that this thread does not keep them busy; the folder itself is
   * covered by the folder of the mount points.
   */
  constructor(hidden: string) {
    const folder = constants.O_RDONLY | constants.O_DIRECTORY;
    this.#processNamespace = openSync('/proc/self/ns/mnt', 'r');
    this.#processRoot = openSync('/', folder);
    unshare('mount');
    // Unmounts of the host reach us, ours do not reach the host.
    check(mount('none', '/', null, BigInt(MS_SLAVE_ALL), null), 'mount', ['/', 'slave']);
    this.#ownNamespace = openSync('/proc/thread-self/ns/mnt', 'r');
    this.#ownRoot = openSync('/', folder);
    const below = `${realpathSync(hidden)}/`;
    for (const { path } of mountTable('/proc/thread-self/mountinfo').toReversed()) {
      if (path.startsWith(below)) check(umount2(path, MNT_DETACH), 'umount2', [path, 'detach']);
    }
    this.#places = hidden;
    mountTmpfs(hidden, PLACES_BYTES, 0o700);
  }

  /**
   * An empty folder for a mount, as a descriptor. Disposing it unmounts all mounts there. It is never shared: `umount2`
   * takes the uppermost mount, even by a descriptor of one below.
   */
  makePlace(): Disposable & { held: number } {
    this.#lastPlace += 1;
    const path = `${this.#places}/${this.#lastPlace}`;
    mkdirSync(path);
    const held = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
    return {
      held,
      [Symbol.dispose]: () => {
        closeSync(held);
        unmountAllOf(path);
        rmdirSync(path);
      },
    };
  }

  /** Runs `work` in the mount namespace of the process. */
  inProcess<T>(work: () => T): T {
    return this.#visit(this.#processNamespace, work, this.#processRoot);
  }

  /** Runs `work` in the mount namespace of another process. Throws `ENOENT` without such a process. */
  inNamespaceOf<T>(pid: number, work: () => T): T {
    const namespace = openNamespace(`/proc/${pid}/ns/mnt`);
    try {
      return this.#visit(namespace, work);
    } finally {
      closeSync(namespace);
    }
  }

  /** At the thread's end: descriptors belong to the process, and one of a namespace keeps it. */
  [Symbol.dispose](): void {
    for (const held of [this.#processNamespace, this.#processRoot, this.#ownNamespace, this.#ownRoot]) closeSync(held);
  }

  #visit<T>(namespace: number, work: () => T, root?: number): T {
    go(namespace, root);
    try {
      return work();
    } finally {
      go(this.#ownNamespace, this.#ownRoot);
    }
  }
}

function unmountAllOf(path: string): void {
  try {
    for (;;) check(umount2(path, MNT_DETACH), 'umount2', [path, 'detach']);
  } catch (error) {
    if (!hasCode(error, 'EINVAL')) throw error; // nothing is mounted there any more
  }
}

/** Entering a namespace leads to its outermost root, which in a chroot is not the root that we had. */
function go(namespace: number, root: number | undefined): void {
  enter(namespace, 'mount');
  if (root === undefined) return;
  check(fchdir(root), 'fchdir', [root]);
  check(chroot('.'), 'chroot', ['.']);
}

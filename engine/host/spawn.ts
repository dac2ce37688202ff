import { bind, check, SystemError } from './libc.ts';

const posixSpawn = bind<
  [Int32Array, string, Buffer, Buffer, readonly (string | null)[], readonly (string | null)[]],
  number
>(
  'int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes, const char **argv, const char **envp)',
);
const initActions = bind<[Buffer], number>('int posix_spawn_file_actions_init(void *actions)');
const destroyActions = bind<[Buffer], number>('int posix_spawn_file_actions_destroy(void *actions)');
const addOpen = bind<[Buffer, number, string, number, number], number>(
  'int posix_spawn_file_actions_addopen(void *actions, int fd, const char *path, int flags, unsigned int mode)',
);
const addDuplicate = bind<[Buffer, number, number], number>(
  'int posix_spawn_file_actions_adddup2(void *actions, int fd, int target)',
);
const addClose = bind<[Buffer, number], number>('int posix_spawn_file_actions_addclose(void *actions, int fd)');
const initAttributes = bind<[Buffer], number>('int posix_spawnattr_init(void *attributes)');
const setFlags = bind<[Buffer, number], number>('int posix_spawnattr_setflags(void *attributes, short flags)');
const setDefaults = bind<[Buffer, Buffer], number>(
  'int posix_spawnattr_setsigdefault(void *attributes, const void *set)',
);
const setMask = bind<[Buffer, Buffer], number>('int posix_spawnattr_setsigmask(void *attributes, const void *set)');
const fillSet = bind<[Buffer], number>('int sigfillset(void *set)');
const socketPair = bind<[number, number, number, Int32Array], number>(
  'int socketpair(int domain, int type, int protocol, int *pair)',
);
const waitPid = bind<[number, Int32Array, number], number>('int waitpid(int pid, int *status, int options)');

/** Larger than what glibc needs on any architecture. */
const STRUCT_BYTES = 512;
const SIGNAL_SET_BYTES = 128;
const SET_SIGNAL_DEFAULTS = 0x04;
const SET_SIGNAL_MASK = 0x08;
const SET_SESSION = 0x80;
const READ_WRITE = 2;
const [UNIX, STREAM_CLOSED_ON_EXEC] = [1, 1 | 0o2000000];
const NO_HANG = 1;

/**
 * Starts a program in a session of its own, so that signals for our group do not reach it, and returns its process id.
 *
 * Node's own spawn copies our page tables, which blocks the event loop for some 5 ms in a process of 150 MB; this takes
 * 0.5 ms. Node does not know the child: it has to be reaped with `reapWhenEnded`.
 *
 * @param descriptors our descriptors by their numbers in the child; 0, 1 and 2 are /dev/null unless named
 */
export function spawnInSession(
  program: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
  descriptors: ReadonlyMap<number, number>,
): number {
  const actions = Buffer.alloc(STRUCT_BYTES);
  initActions(actions);
  try {
    for (const fd of [0, 1, 2]) if (!descriptors.has(fd)) addOpen(actions, fd, '/dev/null', READ_WRITE, 0);
    placeDescriptors(actions, descriptors);
    const pid = new Int32Array(1);
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    const argv = [program, ...words, null];
    const errno = posixSpawn(pid, program, actions, sessionAttributes(), argv, [...variables, null]);
    if (errno !== 0) throw new SystemError('posix_spawn', [program], errno);
    return pid[0]!;
  } finally {
    destroyActions(actions);
  }
}

/** Goes through unused numbers, because a target may be the source of another. */
function placeDescriptors(actions: Buffer, descriptors: ReadonlyMap<number, number>): void {
  const entries = [...descriptors];
  const free = entries.flat().reduce((highest, number) => Math.max(highest, number), 2) + 1;
  for (const [position, [, source]] of entries.entries()) addDuplicate(actions, source, free + position);
  for (const [position, [target]] of entries.entries()) {
    addDuplicate(actions, free + position, target);
    addClose(actions, free + position);
  }
}

let attributes: Buffer | undefined;

function sessionAttributes(): Buffer {
  if (attributes !== undefined) return attributes;
  attributes = Buffer.alloc(STRUCT_BYTES);
  initAttributes(attributes);
  setFlags(attributes, SET_SIGNAL_DEFAULTS | SET_SIGNAL_MASK | SET_SESSION);
  const all = Buffer.alloc(SIGNAL_SET_BYTES);
  fillSet(all);
  setDefaults(attributes, all);
  setMask(attributes, Buffer.alloc(SIGNAL_SET_BYTES));
  return attributes;
}

/** Two connected stream sockets, closed on exec. */
export function connectedSockets(): [number, number] {
  const pair = new Int32Array(2);
  check(socketPair(UNIX, STREAM_CLOSED_ON_EXEC, 0, pair), 'socketpair', []);
  return [pair[0]!, pair[1]!];
}

const ending = new Set<number>();

/**
 * Reaps a child of `spawnInSession` as soon as it ends, so that it does not stay a zombie. To be called when it is
 * about to end, because every SIGCHLD checks all such children.
 */
export function reapWhenEnded(pid: number): void {
  if (hasEnded(pid)) return;
  if (ending.size === 0) process.on('SIGCHLD', reap);
  ending.add(pid);
  reap(); // it may have ended before the handler was there
}

function reap(): void {
  for (const pid of ending) if (hasEnded(pid)) ending.delete(pid);
  if (ending.size === 0) process.off('SIGCHLD', reap);
}

/** A process that is no longer our child counts as ended. */
function hasEnded(pid: number): boolean {
  return waitPid(pid, new Int32Array(1), NO_HANG) !== 0;
}

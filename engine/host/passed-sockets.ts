import { bind, check } from './libc.ts';

const fcntl = bind<[number, number, number], number>('int fcntl(int fd, int command, long value)');
const getsockname = bind<[number, Buffer, Buffer], number>('int getsockname(int fd, void *address, void *length)');

const [F_SETFD, FD_CLOEXEC] = [2, 1];
const FIRST_FD = 3;
const AF_UNIX = 1;
const ADDRESS_BYTES = 128;

/** A listening socket. `path`: of a Unix socket; undefined for TCP. */
export type PassedSocket = Readonly<{ fd: number; path: string | undefined }>;

let passed: readonly PassedSocket[] | undefined;

/**
 * The sockets that systemd has opened for us (sd_listen_fds(3)). The first call must come before any child process: it
 * hides the sockets and their variables from children.
 */
export function passedSockets(environment: NodeJS.ProcessEnv = process.env): readonly PassedSocket[] {
  if (passed !== undefined) return passed;
  const { LISTEN_PID, LISTEN_FDS } = environment;
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete environment[name];
  const count = Number(LISTEN_PID) === process.pid ? Number(LISTEN_FDS ?? 0) : 0;
  passed = Array.from({ length: count }, (_, index) => describe(FIRST_FD + index));
  return passed;
}

function describe(fd: number): PassedSocket {
  check(fcntl(fd, F_SETFD, FD_CLOEXEC), 'fcntl', [fd, 'F_SETFD']);
  const address = Buffer.alloc(ADDRESS_BYTES);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(ADDRESS_BYTES);
  check(getsockname(fd, address, length), 'getsockname', [fd]);
  if (address.readUInt16LE() !== AF_UNIX) return { fd, path: undefined };
  const path = address.toString('utf8', 2, length.readUInt32LE());
  return { fd, path: path.replace(/\0+$/, '') };
}

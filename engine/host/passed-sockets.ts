import { ipOfBytes } from '../lib/notations/ip-address.ts';
import { bind, check } from './libc.ts';

const fcntl = bind<[number, number, number], number>('int fcntl(int fd, int command, long value)');
const getsockname = bind<[number, Buffer, Buffer], number>('int getsockname(int fd, void *address, void *length)');

const [F_SETFD, FD_CLOEXEC] = [2, 1];
const FIRST_FD = 3;
const [AF_UNIX, AF_INET, AF_INET6] = [1, 2, 10];
const ADDRESS_BYTES = 128;

/** A listening socket. `path`: of a Unix socket; undefined for TCP, which has an `address`. */
export type PassedSocket = Readonly<{ fd: number; path: string | undefined; address?: string }>;

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
  const family = address.readUInt16LE();
  if (family === AF_INET) return { fd, path: undefined, address: ipOfBytes(address.subarray(4, 8)) };
  if (family === AF_INET6) return { fd, path: undefined, address: ipOfBytes(address.subarray(8, 24)) };
  if (family !== AF_UNIX) throw new Error(`systemd has passed a socket of the family ${family}`);
  const path = address.toString('utf8', 2, length.readUInt32LE());
  return { fd, path: path.replace(/\0+$/, '') };
}

import { bind as foreign, check } from './libc.ts';

const AF_UNIX = 1;
const SOCK_CLOEXEC = 0o2000000;
const PATH_BYTES = 108;

const socket = foreign<[number, number, number], number>('int socket(int domain, int type, int protocol)');
const connect = foreign<[number, Buffer, number], number>('int connect(int fd, const void *address, uint32_t length)');

/** Unix sockets of the kinds that Node does not open. */
export const [SOCK_DGRAM, SOCK_SEQPACKET] = [2, 5];
export const SOL_SOCKET = 1;
export const MSG_NOSIGNAL = 0x4000;
export const setsockopt = foreign<[number, number, number, Buffer, number], number>(
  'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
);
export const send = foreign<[number, Buffer, number, number], number>(
  'int64_t send(int fd, const void *data, size_t length, int flags)',
);

/** A descriptor. Throws `SystemError`. */
export function openUnixSocket(type: number): number {
  return check(socket(AF_UNIX, type | SOCK_CLOEXEC, 0), 'socket', [type]);
}

/** Throws for a path that is too long, and `SystemError`: `ENOENT`, `ECONNREFUSED`, … */
export function connectUnixSocket(descriptor: number, path: string): void {
  const name = Buffer.from(path);
  if (name.length >= PATH_BYTES) throw new Error(`the path of a socket has at most ${PATH_BYTES - 1} bytes: ${path}`);
  const address = Buffer.alloc(2 + PATH_BYTES);
  address.writeUInt16LE(AF_UNIX, 0);
  name.copy(address, 2);
  check(connect(descriptor, address, 2 + name.length + 1), 'connect', [path]);
}

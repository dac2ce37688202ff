import { closeSync } from 'node:fs';

import { ipBytes } from '../../lib/notations/ip-address.ts';
import { bind as foreign, check } from '../libc.ts';
import { keeperFolder } from '../rootless.ts';
import { portOfKeeper } from './keeper-ports.ts';

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK = { tcp: 1, udp: 2 } as const;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;

const socket = foreign<[number, number, number], number>('int socket(int domain, int type, int protocol)');
const setsockopt = foreign<[number, number, number, Buffer, number], number>(
  'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
);
const bind = foreign<[number, Buffer, number], number>('int bind(int fd, const void *address, uint32_t length)');
const listen = foreign<[number, number], number>('int listen(int fd, int backlog)');

/** `fd`: its socket, which for TCP listens. */
export type ReservedPort = Disposable & Readonly<{ fd: number }>;

/**
 * Reserves a port of one address without serving it, so that no other program can take it; disposing frees it.
 *
 * Throws `EADDRINUSE` when the port is taken, `EADDRNOTAVAIL` when the address is not this machine's.
 */
export function reservePort(protocol: 'tcp' | 'udp', ip: string, port: number): ReservedPort {
  if (keeperFolder !== undefined) return held(portOfKeeper(keeperFolder, protocol, ip, port));
  const values = [protocol, ip, port];
  const bytes = ipBytes(ip);
  const isSix = bytes.length === 16;
  const fd = check(socket(isSix ? AF_INET6 : AF_INET, SOCK[protocol] | SOCK_CLOEXEC, 0), 'socket', values);
  try {
    // `struct sockaddr_in` and `struct sockaddr_in6`
    const address = Buffer.alloc(isSix ? 28 : 16);
    address.writeUInt16LE(isSix ? AF_INET6 : AF_INET, 0);
    address.writeUInt16BE(port, 2);
    bytes.copy(address, isSix ? 8 : 4);
    // The port of IPv4 is reserved for itself.
    if (isSix) check(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, Buffer.from([1, 0, 0, 0]), 4), 'setsockopt', values);
    if (protocol === 'tcp') {
      // With SO_REUSEADDR, closing connections of a former listener do not block the port; another listener does.
      check(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, Buffer.from([1, 0, 0, 0]), 4), 'setsockopt', values);
    }
    check(bind(fd, address, address.length), 'bind', values);
    // Without it, another program that sets SO_REUSEADDR could bind and listen beside us.
    if (protocol === 'tcp') check(listen(fd, 1), 'listen', values);
    return held(fd);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function held(fd: number): ReservedPort {
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
}

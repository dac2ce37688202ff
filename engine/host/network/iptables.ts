import { closeSync, readFileSync } from 'node:fs';

import { hasCode } from '../../lib/errors.ts';
import { bind, check } from '../libc.ts';

const AF_INET = 2;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const IPPROTO_RAW = 255;
const SOL_IP = 0;
const IPT_SO_GET_INFO = 64;
/** `struct ipt_getinfo`: name, valid hooks, entry and underflow of five hooks each, number of entries, size. */
const INFO_BYTES = 32 + 4 + 20 + 20 + 4 + 4;

const socket = bind<[number, number, number], number>('int socket(int domain, int type, int protocol)');
const getsockopt = bind<[number, number, number, Buffer, Buffer], number>(
  'int getsockopt(int fd, int level, int name, void *value, void *length)',
);

/**
 * The size and layout of the filter table in the older kernel interface of iptables, for comparing: it changes when
 * rules come or go. `undefined`: that interface is not in use in this network namespace.
 */
export function legacyFilterLayout(): string | undefined {
  if (!hasLegacyFilter()) return undefined; // asking would create the table
  const fd = check(socket(AF_INET, SOCK_RAW_CLOEXEC, IPPROTO_RAW), 'socket', ['raw']);
  try {
    const info = Buffer.alloc(INFO_BYTES);
    info.write('filter\0', 0);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(INFO_BYTES);
    check(getsockopt(fd, SOL_IP, IPT_SO_GET_INFO, info, length), 'getsockopt', ['IPT_SO_GET_INFO', 'filter']);
    return info.toString('hex', 32);
  } finally {
    closeSync(fd);
  }
}

function hasLegacyFilter(): boolean {
  try {
    return readFileSync('/proc/thread-self/net/ip_tables_names', 'utf8').split('\n').includes('filter');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false; // the kernel has no such interface
    throw error;
  }
}

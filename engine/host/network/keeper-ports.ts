import { closeSync } from 'node:fs';
import { join } from 'node:path';

import { bind as foreign, check, pointerTo, SystemError } from '../libc.ts';
import {
  connectUnixSocket,
  MSG_NOSIGNAL,
  openUnixSocket,
  send,
  setsockopt,
  SOCK_SEQPACKET,
  SOL_SOCKET,
} from '../unix-sockets.ts';

const SO_RCVTIMEO = 20;
const MSG_CMSG_CLOEXEC = 0x40000000;
const ANSWER_SECONDS = 30;
const POINTER_BYTES = 8;
/** `struct msghdr`, `struct iovec`, and `struct cmsghdr` with one descriptor, on 64 bits. */
const [HEADER_BYTES, PART_BYTES, CONTROL_BYTES, CONTROL_HEADER_BYTES] = [56, 16, 24, 16];

const recvmsg = foreign<[number, Buffer, number], number>('int64_t recvmsg(int fd, void *message, int flags)');

/**
 * A socket on a port of the machine, in whose network namespace the keeper is and this daemon is not: the keeper opens
 * and passes it. Throws what the kernel answered there, such as `EADDRINUSE` and `EACCES`.
 */
export function portOfKeeper(folder: string, protocol: 'tcp' | 'udp', ip: string, port: number): number {
  const values = [protocol, ip, port];
  const fd = openUnixSocket(SOCK_SEQPACKET);
  try {
    const timeout = Buffer.alloc(16);
    timeout.writeBigInt64LE(BigInt(ANSWER_SECONDS), 0);
    check(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, timeout, timeout.length), 'setsockopt', values);
    connectUnixSocket(fd, join(folder, 'ports'));
    const request = Buffer.from(`${protocol} ${ip} ${port}`);
    check(send(fd, request, request.length, MSG_NOSIGNAL), 'send', values);
    return receive(fd, values);
  } finally {
    closeSync(fd);
  }
}

/** The answer is an errno, and a descriptor where that is 0. */
function receive(fd: number, values: readonly unknown[]): number {
  const error = Buffer.alloc(4);
  const control = Buffer.alloc(CONTROL_BYTES);
  const part = Buffer.alloc(PART_BYTES);
  part.writeBigUInt64LE(pointerTo(error), 0);
  part.writeBigUInt64LE(BigInt(error.length), POINTER_BYTES);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeBigUInt64LE(pointerTo(part), 16);
  header.writeBigUInt64LE(1n, 24);
  header.writeBigUInt64LE(pointerTo(control), 32);
  header.writeBigUInt64LE(BigInt(control.length), 40);
  const length = check(recvmsg(fd, header, MSG_CMSG_CLOEXEC), 'recvmsg', values);
  if (length !== error.length) throw new Error('the keeper of the namespaces has not answered');
  const errno = error.readInt32LE();
  if (errno !== 0) throw new SystemError('bind', values, errno);
  return control.readInt32LE(CONTROL_HEADER_BYTES);
}

import type { Socket } from 'node:net';

import { bind } from '../../host/libc.ts';

const FLAGS = 0x40 | 0x4000; // MSG_DONTWAIT, MSG_NOSIGNAL

const send = bind<[number, Buffer, number, number], number>(
  'int64_t send(int fd, const void *bytes, size_t length, int flags)',
);

/** What Node does not document: the descriptor below a connection, -1 once it is closed. */
type Handle = Readonly<{ fd?: number }> | null | undefined;

/**
 * Hands bytes to the kernel by one system call, and returns how many it took; the caller writes the rest. A write by
 * Node costs several times as much, which counts where one piece goes to many clients. 0 where bytes wait before these,
 * and with TLS.
 */
export function sendNow(socket: Socket, bytes: Buffer): number {
  if (socket.writableLength > 0 || socket.writableEnded || 'encrypted' in socket) return 0;
  const fd = (socket as unknown as { _handle?: Handle })._handle?.fd ?? -1;
  if (fd < 0) return 0;
  return Math.max(0, send(fd, bytes, bytes.length, FLAGS)); // a failure is met again by the caller's write
}

import type { Socket } from 'node:net';

import { hasCode } from '../lib/errors.ts';
import { bind, check } from './libc.ts';

const [F_GETFL, F_SETFL, F_SETOWN, F_SETSIG] = [3, 4, 8, 10];
const O_ASYNC = 0o20000;
/** A signal that is ignored by default, so it does nothing to a process without a handler. */
const SIGURG = 23;
const [POLLERR, POLLHUP] = [0x08, 0x10];
const POLLFD_BYTES = 8;

// fcntl is variadic; that makes no difference here, because no argument is a floating-point number.
const fcntl = bind<[number, number, number], number>('int fcntl(int fd, int command, long value)');
const poll = bind<[Buffer, number, number], number>('int poll(void *descriptors, unsigned long count, int timeout)');

/**
 * Destroys half-closed sockets when the peer closes them completely.
 *
 * Node stops watching a socket once it has read the end, so it notices the full close only when it writes. The kernel
 * signals it instead: on a unix socket at once; over TCP, where a close looks like a half-close, when the peer answers
 * the next byte or keep-alive probe with a reset.
 */
export class HangUps {
  readonly #watched = new Set<Socket>();
  readonly #signalled = (): void => this.#destroyClosed();

  /** Watches a socket that nobody reads: its end was read, or its next request has to wait. */
  watch(socket: Socket): void {
    const fd = descriptorOf(socket);
    if (fd === undefined || this.#watched.has(socket)) return;
    if (this.#watched.size === 0) process.on('SIGURG', this.#signalled);
    this.#watched.add(socket);
    socket.once('close', () => this.#forget(socket));
    check(fcntl(fd, F_SETSIG, SIGURG), 'fcntl', [fd, 'F_SETSIG']);
    check(fcntl(fd, F_SETOWN, process.pid), 'fcntl', [fd, 'F_SETOWN']);
    const flags = check(fcntl(fd, F_GETFL, 0), 'fcntl', [fd, 'F_GETFL']);
    check(fcntl(fd, F_SETFL, flags | O_ASYNC), 'fcntl', [fd, 'F_SETFL']);
    this.#destroyClosed(); // it may have closed before the signal was requested
  }

  #forget(socket: Socket): void {
    this.#watched.delete(socket);
    if (this.#watched.size === 0) process.off('SIGURG', this.#signalled);
  }

  #destroyClosed(): void {
    const sockets = [...this.#watched].filter((socket) => descriptorOf(socket) !== undefined);
    const descriptors = Buffer.alloc(sockets.length * POLLFD_BYTES);
    for (const [i, socket] of sockets.entries()) descriptors.writeInt32LE(descriptorOf(socket)!, i * POLLFD_BYTES);
    look(descriptors);
    for (const [i, socket] of sockets.entries()) {
      const seen = descriptors.readInt16LE(i * POLLFD_BYTES + 6);
      if ((seen & (POLLHUP | POLLERR)) !== 0) socket.destroy();
    }
  }
}

/** Polls the sockets; starts again when a signal interrupts it. */
function look(descriptors: Buffer): void {
  const count = descriptors.length / POLLFD_BYTES;
  for (;;) {
    try {
      check(poll(descriptors, count, 0), 'poll', [count]);
      return;
    } catch (error) {
      if (!hasCode(error, 'EINTR')) throw error;
    }
  }
}

/** Undefined for a closed socket. Node has no public API for it. */
function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as Socket & { _handle?: { fd: number } | null };
  return handle == null || handle.fd < 0 ? undefined : handle.fd;
}

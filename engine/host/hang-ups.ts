import type { Socket } from 'node:net';

import { hasCode } from '../lib/errors.ts';
import { bind, check } from './libc.ts';

const [F_GETFL, F_SETFL, F_SETOWN, F_SETSIG] = [3, 4, 8, 10];
const O_ASYNC = 0o20000;
/** Of all signals one that does nothing to a process that does not listen for it. */
const SIGURG = 23;
const [POLLERR, POLLHUP] = [0x08, 0x10];
const POLLFD_BYTES = 8;

// No argument of these calls is a floating-point number: that fcntl takes a variable list makes no difference.
const fcntl = bind<[number, number, number], number>('int fcntl(int fd, int command, long value)');
const poll = bind<[Buffer, number, number], number>('int poll(void *descriptors, unsigned long count, int timeout)');

/**
 * Destroys sockets whose other side has closed them wholly, when that had half-closed them before.
 *
 * Node does not look at a socket any more once it has read the end, so it learns of the rest only by writing. The kernel
 * tells us by a signal instead: on a unix socket at once; over TCP, where a close looks like a half-close, when the other
 * side answers the next byte or keep-alive probe with a reset.
 */
export class HangUps {
  readonly #watched = new Set<Socket>();
  readonly #signalled = (): void => this.#destroyClosed();

  /** For a socket of which the end was read. */
  watch(socket: Socket): void {
    const fd = descriptorOf(socket);
    if (fd === undefined) return;
    if (this.#watched.size === 0) process.on('SIGURG', this.#signalled);
    this.#watched.add(socket);
    socket.once('close', () => this.#forget(socket));
    check(fcntl(fd, F_SETSIG, SIGURG), 'fcntl', [fd, 'F_SETSIG']);
    check(fcntl(fd, F_SETOWN, process.pid), 'fcntl', [fd, 'F_SETOWN']);
    const flags = check(fcntl(fd, F_GETFL, 0), 'fcntl', [fd, 'F_GETFL']);
    check(fcntl(fd, F_SETFL, flags | O_ASYNC), 'fcntl', [fd, 'F_SETFL']);
    this.#destroyClosed(); // it may have been before the signal was asked for
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

/** Fills in what there is to be seen. A signal that comes meanwhile, ours or another, makes it begin again. */
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

/** Undefined for one that is closed. Node tells it nowhere else. */
function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as Socket & { _handle?: { fd: number } | null };
  return handle == null || handle.fd < 0 ? undefined : handle.fd;
}

import { closeSync } from 'node:fs';
import { constants } from 'node:os';

import { bind, check, refusal } from '../libc.ts';

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC_NONBLOCK = 3 | 0o2000000 | 0o4000;
/** Protocols of netlink, and the bits of their groups: NFNLGRP_NFTABLES and RTNLGRP_LINK. */
const SUBJECTS = { rules: { protocol: 12, group: 1 << 6 }, links: { protocol: 0, group: 1 } } as const;
const SOCKADDR_BYTES = 12;
const [F_GETFL, F_SETFL, F_SETOWN, F_SETSIG] = [3, 4, 8, 10];
const O_ASYNC = 0o20000;
/** Ignored by default, so it does nothing to a process without a handler. */
const SIGURG = 23;

const socket = bind<[number, number, number], number>('int socket(int domain, int type, int protocol)');
const bindSocket = bind<[number, Buffer, number], number>('int bind(int fd, const void *address, uint32_t length)');
const recv = bind<[number, Buffer, number, number], number>(
  'int64_t recv(int fd, void *bytes, size_t length, int flags)',
);
const fcntl = bind<[number, number, number], number>('int fcntl(int fd, int command, long value)');

const incoming = Buffer.alloc(64 * 1024);

/**
 * Says when packet rules or links have changed, by any program, in the network namespace in which it was made. Node
 * cannot wait for such a socket, so the kernel sends a signal.
 */
export class ChangeMonitor implements Disposable {
  readonly #subject: keyof typeof SUBJECTS;
  readonly #fd: number;
  readonly #signalled: () => void;
  #isClosed = false;

  constructor(subject: keyof typeof SUBJECTS, changed: () => void) {
    const { protocol, group } = SUBJECTS[subject];
    this.#subject = subject;
    this.#fd = check(socket(AF_NETLINK, SOCK_RAW_CLOEXEC_NONBLOCK, protocol), 'socket', ['netlink', subject]);
    this.#signalled = () => {
      if (this.#hasNews()) changed();
    };
    process.on('SIGURG', this.#signalled);
    try {
      check(fcntl(this.#fd, F_SETSIG, SIGURG), 'fcntl', ['F_SETSIG']);
      check(fcntl(this.#fd, F_SETOWN, process.pid), 'fcntl', ['F_SETOWN']);
      const flags = check(fcntl(this.#fd, F_GETFL, 0), 'fcntl', ['F_GETFL']);
      check(fcntl(this.#fd, F_SETFL, flags | O_ASYNC), 'fcntl', ['F_SETFL']);
      // `struct sockaddr_nl`; the kernel chooses the port, without which nothing is delivered.
      const address = Buffer.alloc(SOCKADDR_BYTES);
      address.writeUInt16LE(AF_NETLINK, 0);
      address.writeUInt32LE(group, 8);
      check(bindSocket(this.#fd, address, address.length), 'bind', ['netlink', subject]);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    process.off('SIGURG', this.#signalled);
    closeSync(this.#fd);
  }

  /** Drops all messages, including lost ones: only the fact of a change matters. */
  #hasNews(): boolean {
    for (let hasNews = false; ; hasNews = true) {
      if (recv(this.#fd, incoming, incoming.length, 0) >= 0) continue;
      const error = refusal('recv', ['netlink', this.#subject]);
      if (error.errno === constants.errno.EAGAIN) return hasNews;
      if (error.errno !== constants.errno.ENOBUFS) throw error;
    }
  }
}

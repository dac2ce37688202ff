import { closeSync } from 'node:fs';

import { bind as foreign, check, refusal } from './libc.ts';

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_SNDBUFFORCE = 32;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const PATH_BYTES = 108;
/** As in systemd's own clients: the size of a long message of the journal. */
const BUFFER_BYTES = 8 * 1024 * 1024;

const socket = foreign<[number, number, number], number>('int socket(int domain, int type, int protocol)');
const setsockopt = foreign<[number, number, number, Buffer, number], number>(
  'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
);
const connect = foreign<[number, Buffer, number], number>('int connect(int fd, const void *address, uint32_t length)');
const send = foreign<[number, Buffer, number, number], number>(
  'int64_t send(int fd, const void *data, size_t length, int flags)',
);

/** Datagrams to a Unix socket, which Node cannot send. Throws the kernel's refusal: `ENOENT`, `ECONNREFUSED`, … */
export class UnixDatagrams implements Disposable {
  readonly #path: string;
  readonly #descriptor: number;

  constructor(path: string) {
    this.#path = path;
    const name = Buffer.from(path);
    if (name.length >= PATH_BYTES) throw new Error(`the path of a socket has at most ${PATH_BYTES - 1} bytes: ${path}`);
    const address = Buffer.alloc(2 + PATH_BYTES);
    address.writeUInt16LE(AF_UNIX, 0);
    name.copy(address, 2);
    this.#descriptor = check(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), 'socket', [path]);
    try {
      const size = Buffer.alloc(4);
      size.writeInt32LE(BUFFER_BYTES);
      setsockopt(this.#descriptor, SOL_SOCKET, SO_SNDBUFFORCE, size, size.length); // without it messages are shorter
      check(connect(this.#descriptor, address, 2 + name.length + 1), 'connect', [path]);
    } catch (error) {
      closeSync(this.#descriptor);
      throw error;
    }
  }

  /** False when the receiver's queue is full. */
  send(message: Buffer): boolean {
    if (send(this.#descriptor, message, message.length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
    const error = refusal('send', [this.#path]);
    if (error.code === 'EAGAIN') return false;
    throw error;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

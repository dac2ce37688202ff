import { closeSync } from 'node:fs';

import { refusal } from './libc.ts';
import {
  connectUnixSocket,
  MSG_NOSIGNAL,
  openUnixSocket,
  send,
  setsockopt,
  SOCK_DGRAM,
  SOL_SOCKET,
} from './unix-sockets.ts';

const SO_SNDBUFFORCE = 32;
const MSG_DONTWAIT = 0x40;
/** As in systemd's own clients: the size of a long message of the journal. */
const BUFFER_BYTES = 8 * 1024 * 1024;

/** Datagrams to a Unix socket, which Node cannot send. Throws the kernel's refusal: `ENOENT`, `ECONNREFUSED`, … */
export class UnixDatagrams implements Disposable {
  readonly #path: string;
  readonly #descriptor: number;

  constructor(path: string) {
    this.#path = path;
    this.#descriptor = openUnixSocket(SOCK_DGRAM);
    try {
      const size = Buffer.alloc(4);
      size.writeInt32LE(BUFFER_BYTES);
      setsockopt(this.#descriptor, SOL_SOCKET, SO_SNDBUFFORCE, size, size.length); // without it messages are shorter
      connectUnixSocket(this.#descriptor, path);
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

import { closeSync } from 'node:fs';

import { append } from '../../lib/append.ts';
import { bind, check, SystemError } from '../libc.ts';

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const SOL_NETLINK = 270;
const NETLINK_CAP_ACK = 10;
const NETLINK_EXT_ACK = 11;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
const NLMSGERR_ATTR_MSG = 1;
const NLM_F_CAPPED = 0x100;
const NLM_F_ACK_TLVS = 0x200;
const HEADER_BYTES = 16;

export const NLM_F = {
  request: 1,
  multi: 2,
  ack: 4,
  dump: 0x300,
  replace: 0x100,
  exclusive: 0x200,
  create: 0x400,
} as const;

const socket = bind<[number, number, number], number>('int socket(int domain, int type, int protocol)');
const setsockopt = bind<[number, number, number, Buffer, number], number>(
  'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
);
const send = bind<[number, Buffer, number, number], number>(
  'int64_t send(int fd, const void *bytes, size_t length, int flags)',
);
const recv = bind<[number, Buffer, number, number], number>(
  'int64_t recv(int fd, void *bytes, size_t length, int flags)',
);

const PROTOCOL = { route: 0, netfilter: 12 } as const;

/** One request to the kernel. Errors name `call` and `values`. */
export type Message = Readonly<{ type: number; flags: number; body: Buffer; call: string; values: readonly unknown[] }>;

export type Attributes = ReadonlyMap<number, Buffer>;

// Answers come in parts of at most 32 KiB. One buffer serves all sockets, as every exchange is synchronous.
const incoming = Buffer.alloc(64 * 1024);

/**
 * A netlink socket. It belongs for good to the network namespace in which it was opened, wherever the thread is when
 * it is used, and it keeps that namespace alive.
 */
export class Netlink implements Disposable {
  readonly #fd: number;
  #sequence = 0;
  #closed = false;

  constructor(protocol: keyof typeof PROTOCOL = 'route') {
    this.#fd = check(socket(AF_NETLINK, SOCK_RAW_CLOEXEC, PROTOCOL[protocol]), 'socket', ['netlink', protocol]);
    const on = Buffer.from([1, 0, 0, 0]);
    // Refusals then carry a sentence of the kernel, and do not repeat the whole request.
    setsockopt(this.#fd, SOL_NETLINK, NETLINK_EXT_ACK, on, 4);
    setsockopt(this.#fd, SOL_NETLINK, NETLINK_CAP_ACK, on, 4);
  }

  /**
   * Applies the changes in order, with few system calls. Throws the `SystemError` of the first that failed; the later
   * ones are tried as well.
   */
  apply(...messages: readonly Message[]): void {
    const errors: SystemError[] = [];
    for (const part of parts(messages)) {
      const first = this.#sequence + 1;
      this.#send(this.#encoded(part));
      append(errors, this.#takeAnswers(part, first));
    }
    if (errors[0] !== undefined) throw errors[0];
  }

  /** Like `apply` for slow changes: another thread waits for the kernel. The socket must not be used meanwhile. */
  async applyInBackground(...messages: readonly Message[]): Promise<void> {
    const errors: SystemError[] = [];
    for (const part of parts(messages)) {
      const first = this.#sequence + 1;
      const bytes = Buffer.concat(this.#encoded(part));
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      send.async(this.#fd, bytes, bytes.length, 0, (error, sent) => (error === null ? resolve(sent) : reject(error)));
      check(await promise, 'send', ['netlink', bytes.length]);
      append(errors, this.#takeAnswers(part, first));
    }
    if (errors[0] !== undefined) throw errors[0];
  }

  /** Applies all of the changes or none, where `begin` and `end` are what the protocol puts around them. */
  applyBatch(begin: Message, messages: readonly Message[], end: Message): void {
    const before = encode(begin, NLM_F.request, ++this.#sequence);
    const first = this.#sequence + 1;
    this.#send([before, ...this.#encoded(messages), encode(end, NLM_F.request, ++this.#sequence)]);
    const [error] = this.#takeAnswers(messages, first);
    if (error !== undefined) throw error;
  }

  #encoded(messages: readonly Message[]): Buffer[] {
    return messages.map((message) => encode(message, NLM_F.request | NLM_F.ack, ++this.#sequence));
  }

  #takeAnswers(messages: readonly Message[], first: number): SystemError[] {
    const errors: SystemError[] = [];
    for (let open = messages.length; open > 0;) {
      for (const { type, flags, sequence, body } of this.#receive(messages[0]!)) {
        const message = messages[sequence - first];
        if (type !== NLMSG_ERROR || message === undefined) continue;
        open -= 1;
        const errno = -body.readInt32LE(0);
        if (errno !== 0) errors.push(new SystemError(message.call, message.values, errno, detailOf(body, flags)));
      }
    }
    return errors;
  }

  /** Requests one object, or with `NLM_F.dump` all of them, and returns the bodies of the answers. */
  query(message: Message): Buffer[] {
    const dump = (message.flags & NLM_F.dump) !== 0;
    const own = ++this.#sequence;
    this.#send([encode(message, NLM_F.request, own)]);
    const bodies: Buffer[] = [];
    for (;;) {
      for (const { type, flags, sequence, body } of this.#receive(message)) {
        if (sequence !== own) continue;
        if (type === NLMSG_DONE) return bodies;
        if (type === NLMSG_ERROR) {
          const errno = -body.readInt32LE(0);
          if (errno !== 0) throw new SystemError(message.call, message.values, errno, detailOf(body, flags));
          return bodies;
        }
        bodies.push(Buffer.from(body));
        if (!dump) return bodies;
      }
    }
  }

  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#fd);
  }

  #send(messages: readonly Buffer[]): void {
    const bytes = messages.length === 1 ? messages[0]! : Buffer.concat(messages);
    check(send(this.#fd, bytes, bytes.length, 0), 'send', ['netlink', bytes.length]);
  }

  *#receive({ call, values }: Message): Generator<{ type: number; flags: number; sequence: number; body: Buffer }> {
    const length = check(recv(this.#fd, incoming, incoming.length, 0), 'recv', ['netlink', call, ...values]);
    for (let at = 0; at + HEADER_BYTES <= length;) {
      const size = incoming.readUInt32LE(at);
      yield {
        type: incoming.readUInt16LE(at + 4),
        flags: incoming.readUInt16LE(at + 6),
        sequence: incoming.readUInt32LE(at + 8),
        body: incoming.subarray(at + HEADER_BYTES, at + size),
      };
      at += aligned(size);
    }
  }
}

/** The kernel drops answers for which a socket's buffer has no room: its usual size is enough for some 270 of them. */
const AT_ONCE = 100;

function parts(messages: readonly Message[]): Message[][] {
  const count = Math.ceil(messages.length / AT_ONCE);
  return Array.from({ length: count }, (_, part) => messages.slice(part * AT_ONCE, (part + 1) * AT_ONCE));
}

/** One attribute: type and value, padded to four bytes. */
export function attribute(type: number, value: Buffer): Buffer {
  const bytes = Buffer.alloc(aligned(4 + value.length));
  bytes.writeUInt16LE(4 + value.length, 0);
  bytes.writeUInt16LE(type, 2);
  value.copy(bytes, 4);
  return bytes;
}

/** An attribute whose value is a list of attributes. */
export function nestAttributes(type: number, ...parts: readonly Buffer[]): Buffer {
  return attribute(type, Buffer.concat(parts));
}

export function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

export function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}

/** The attributes of an answer, from `at` bytes on; the last one of a repeated attribute. */
export function readAttributes(body: Buffer, at = 0): Attributes {
  const attributes = new Map<number, Buffer>();
  while (at + 4 <= body.length) {
    const size = body.readUInt16LE(at);
    if (size < 4) break;
    attributes.set(body.readUInt16LE(at + 2) & 0x3fff, body.subarray(at + 4, at + size));
    at += aligned(size);
  }
  return attributes;
}

export function readText(value: Buffer | undefined): string {
  return value === undefined ? '' : value.toString('utf8').replace(/\0.*$/s, '');
}

function encode({ type, flags, body }: Message, more: number, sequence: number): Buffer {
  const bytes = Buffer.alloc(aligned(HEADER_BYTES + body.length));
  bytes.writeUInt32LE(HEADER_BYTES + body.length, 0);
  bytes.writeUInt16LE(type, 4);
  bytes.writeUInt16LE(flags | more, 6);
  bytes.writeUInt32LE(sequence, 8);
  body.copy(bytes, HEADER_BYTES);
  return bytes;
}

function detailOf(body: Buffer, flags: number): string {
  if ((flags & NLM_F_ACK_TLVS) === 0) return '';
  const repeated = (flags & NLM_F_CAPPED) === 0 ? body.readUInt32LE(4) : HEADER_BYTES;
  return readText(readAttributes(body, 4 + aligned(repeated)).get(NLMSGERR_ATTR_MSG));
}

function aligned(size: number): number {
  return (size + 3) & ~3;
}

import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';

import { sleep, type Clock } from '../../lib/clock.ts';
import { hasCode } from '../../lib/errors.ts';

type Receiver = Readonly<{
  clock: Clock;
  host: string;
  port: number;
  /** The receiver is gone. */
  broken: () => void;
  /** A message exceeds the size of a datagram. */
  tooLong: () => void;
}>;

const REFUSAL_DELAY_MS = 100;

/** Datagrams to one receiver. A missing receiver is only noticed if the kernel learns of it, as on this machine. */
export class Datagrams implements Disposable {
  readonly #receiver: Receiver;
  #socket: Promise<Socket> | undefined;
  #raw: Socket | undefined;
  #failure: Error | undefined;

  constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  /** One after the other, to keep their order and our buffers small. */
  async send(datagrams: Iterable<Buffer>): Promise<void> {
    this.#socket ??= this.#connect();
    const socket = await this.#socket;
    for (const datagram of datagrams) {
      if (this.#failure !== undefined) throw this.#failure;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      socket.send(datagram, (error) => {
        if (error !== null && !hasCode(error, 'EMSGSIZE')) return reject(error);
        if (error !== null) this.#receiver.tooLong();
        resolve();
      });
      await promise;
    }
  }

  /** Rejects when the last ones did not find the receiver, which the kernel reports a moment later. */
  async end(): Promise<void> {
    if (this.#raw === undefined) return;
    await sleep(this.#receiver.clock, REFUSAL_DELAY_MS);
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #connect(): Promise<Socket> {
    const { host, port, broken } = this.#receiver;
    const { address } = await lookup(host === '' ? 'localhost' : host);
    if (this.#failure !== undefined) throw this.#failure;
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    this.#raw = socket;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.on('error', (error) => {
      reject(error);
      if (this.#failure === undefined) broken();
      this.#failure ??= error;
    });
    socket.connect(port, address, resolve);
    await promise;
    return socket;
  }

  [Symbol.dispose](): void {
    this.#failure ??= new Error('the delivery ends');
    this.#raw?.close();
  }
}

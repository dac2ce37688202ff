import type { Socket } from 'node:net';

import type { Clock } from '../../lib/clock.ts';

/** A present receiver answers within this time. */
const CONNECT_TIMEOUT_MS = 10_000;
/** The time that it has to read the rest after our end of the stream. */
const LINGER_MS = 2000;

type Connect = Readonly<{
  clock: Clock;
  /** Begins to connect; `ready` is the event of success. */
  open: () => Socket;
  ready: 'connect' | 'secureConnect';
  /** The connection has ended between two writes. */
  broken: () => void;
  data?: (bytes: Buffer) => void;
}>;

/** A stream to a receiver, made with the first write; one that broke stays broken. */
export class Connection implements Disposable {
  readonly #how: Connect;
  #socket: Promise<Socket> | undefined;
  #raw: Socket | undefined;
  #failure: Error | undefined;
  #fail: ((error: Error) => void) | undefined;

  constructor(how: Connect) {
    this.#how = how;
  }

  /** Resolves when the kernel has all of it, however long the receiver takes to read. */
  async write(bytes: Buffer): Promise<void> {
    this.#socket ??= this.#connect();
    const socket = await this.#socket;
    await this.#unlessBroken((resolve) => socket.write(bytes, (error) => (error ? undefined : resolve())));
  }

  /** Resolves with the result of `begin`, unless the connection ends before. */
  async #unlessBroken(begin: (resolve: () => void) => void): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#fail = reject;
    begin(resolve);
    try {
      await promise;
    } finally {
      this.#fail = undefined;
    }
  }

  /** Ends it from our side. Rejects when the receiver resets it instead of reading to the end. */
  async end(): Promise<void> {
    if (this.#raw === undefined || this.#failure !== undefined) return;
    const socket = this.#raw;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    using _patience = this.#how.clock.after(LINGER_MS, resolve);
    this.#fail = (error) => (error instanceof PeerEnded ? resolve() : reject(error));
    socket.end();
    await promise;
  }

  async #connect(): Promise<Socket> {
    const socket = this.#how.open();
    this.#raw = socket;
    socket.on('error', (error) => this.#break(error));
    socket.on('close', () => this.#break(new PeerEnded()));
    socket.on('data', this.#how.data ?? (() => undefined));
    socket.setKeepAlive(true, 30_000);
    const giveUp = (): void => void socket.destroy(new Error('the receiver does not answer'));
    using _deadline = this.#how.clock.after(CONNECT_TIMEOUT_MS, giveUp);
    await this.#unlessBroken((resolve) => socket.once(this.#how.ready, resolve));
    return socket;
  }

  #break(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    if (this.#fail === undefined) this.#how.broken();
    else this.#fail(error);
  }

  [Symbol.dispose](): void {
    this.#failure ??= new Error('the delivery ends');
    this.#fail?.(this.#failure);
    this.#raw?.destroy();
  }
}

class PeerEnded extends Error {
  constructor() {
    super('the receiver closed the connection');
  }
}

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

/** The network namespace that this process is in: for daemons that have to reach receivers of ours on the loopback. */
export const OWN_NETNS = `/proc/${process.pid}/ns/net`;

/** Settings with which a daemon leaves the machine's network alone. */
export const NO_NETWORK = ['--bridge=none'];
export const NO_NETWORK_DOCKERD = [...NO_NETWORK, '--iptables=false', '--ip-forward=false', '--ip-masq=false'];

const DEADLINE_MS = 120_000;

/** Wakes the waiters for arrived data. */
export class Arrivals {
  #waiting: { isThere: () => boolean; resolve: () => void }[] = [];

  /** Resolves when `isThere`; rejects after two minutes, showing what has arrived. */
  async until(isThere: () => boolean, shown: () => string): Promise<void> {
    if (isThere()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ isThere, resolve });
    const timer = setTimeout(() => reject(new Error(`not received in time; there is: ${shown()}`)), DEADLINE_MS);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  arrived(): void {
    this.#waiting = this.#waiting.filter(({ isThere, resolve }) => {
      if (!isThere()) return true;
      resolve();
      return false;
    });
  }
}

/** Takes datagrams on the loopback. */
export class UdpReceiver implements AsyncDisposable {
  readonly #socket = createSocket('udp4');
  readonly #arrivals = new Arrivals();
  readonly messages: Buffer[] = [];

  static async start(port = 0): Promise<UdpReceiver> {
    const made = new UdpReceiver();
    made.#socket.on('message', (message) => {
      made.messages.push(message);
      made.#arrivals.arrived();
    });
    made.#socket.bind(port, '127.0.0.1');
    await once(made.#socket, 'listening');
    return made;
  }

  get port(): number {
    return this.#socket.address().port;
  }

  async until(isThere: (messages: readonly Buffer[]) => boolean): Promise<void> {
    await this.#arrivals.until(
      () => isThere(this.messages),
      () => this.messages.slice(-5).join('\n'),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}

type StreamOptions = Readonly<{ port?: number; path?: string; tls?: TlsOptions; reads?: boolean }>;

/** Takes streams on the loopback or on a Unix socket, and remembers every byte. With `reads: false` it reads none. */
export class StreamReceiver implements AsyncDisposable {
  readonly #server: Server;
  readonly #arrivals = new Arrivals();
  readonly #sockets = new Set<Socket>();
  readonly #chunks: Buffer[] = [];
  connections = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start({ port = 0, path, tls, reads = true }: StreamOptions = {}): Promise<StreamReceiver> {
    const server = tls === undefined ? createServer() : createTlsServer(tls);
    const made = new StreamReceiver(server);
    server.on('tlsClientError', () => undefined);
    server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => made.#take(socket, reads));
    server.listen(path ?? { port, host: '127.0.0.1' });
    await once(server, 'listening');
    return made;
  }

  #take(socket: Socket, reads: boolean): void {
    this.connections += 1;
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket)).on('error', () => undefined);
    this.#arrivals.arrived();
    if (!reads) {
      socket.pause();
      return;
    }
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#arrivals.arrived();
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get received(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  async until(isThere: (receiver: this) => boolean): Promise<void> {
    await this.#arrivals.until(
      () => isThere(this),
      () => this.received.toString().slice(-1000),
    );
  }

  /** Ends all connections; it goes on listening. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Sends data to all connected clients. */
  answer(bytes: Uint8Array): void {
    for (const socket of this.#sockets) socket.write(bytes);
  }

  /** Behaves like a receiver that dies. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

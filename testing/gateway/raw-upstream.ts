import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** An upstream whose connections the test controls. */
export class RawUpstream implements AsyncDisposable {
  readonly url: string;
  readonly sockets: Socket[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('connection', (socket: Socket) => this.sockets.push(socket));
  }

  /** `onRequest` is told about each piece of text that begins with a head. */
  static async start(onRequest: (socket: Socket, text: string, connection: number) => void): Promise<RawUpstream> {
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      const connection = connections;
      socket.on('error', () => socket.destroy());
      socket.on('data', (data) => onRequest(socket, data.toString('latin1'), connection));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new RawUpstream(server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }
}

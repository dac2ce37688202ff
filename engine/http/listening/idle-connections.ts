import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Connections without a request, each of which costs 8 KB; clients keep some of them for hours. */
const MAX_IDLE_CONNECTIONS = 4096;

/** Connections that await a request: the one that has waited longest is closed when there are too many. */
export class IdleConnections {
  /** In the order in which they became idle. */
  readonly #idle = new Set<Socket>();
  readonly #responses = new WeakMap<Socket, ServerResponse>();

  add(socket: Socket): void {
    if (socket.destroyed) return;
    this.#idle.add(socket);
    const [oldest] = this.#idle;
    if (this.#idle.size <= MAX_IDLE_CONNECTIONS || oldest === undefined) return;
    this.#idle.delete(oldest);
    oldest.destroy();
  }

  delete(socket: Socket): void {
    this.#idle.delete(socket);
  }

  /** Counts a connection as busy until its request is answered; for good if a route takes it over. */
  begin(socket: Socket, response: ServerResponse): void {
    this.#idle.delete(socket);
    this.#responses.set(socket, response);
    response.once('close', () => {
      if (this.#responses.get(socket) !== response) return; // its next request is there
      this.#responses.delete(socket);
      this.add(socket);
    });
  }

  /** Whether the answer to its request has begun and not ended: bytes in between would damage it. */
  isAnswering(socket: Socket): boolean {
    return this.#responses.get(socket)?.headersSent === true;
  }
}

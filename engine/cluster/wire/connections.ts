import type { Socket } from 'node:net';

import type { Clock } from '../../lib/clock.ts';
import { Admission } from './admission.ts';

/** Life of a connection without a node's certificate: a join waits for an answer for 20 s. */
const STRANGER_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS_PER_WORKER = 32;

/** The connections of port 2377: all are strangers' until they turn out to be a node's. */
export class Connections implements Disposable {
  readonly #clock: Clock;
  readonly #sockets = new Set<Socket>();
  readonly #admission = new Admission();
  /** Places in `#admission`, by connection. */
  readonly #strangers = new Map<string, Disposable>();
  /** Numbers of connections, by worker. */
  readonly #workers = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a new connection; `begin` starts its handshake. */
  accept(socket: Socket, begin: () => void): void {
    const place = placeOf(socket);
    const stranger = new DisposableStack();
    this.#sockets.add(socket);
    this.#strangers.set(place, stranger);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (this.#strangers.get(place) === stranger) this.#strangers.delete(place);
      stranger[Symbol.dispose]();
    });
    stranger.use(this.#clock.after(STRANGER_TIMEOUT_MS, () => socket.destroy()));
    const entry = this.#admission.enter(socket.remoteAddress ?? '', begin);
    if (entry === undefined) socket.destroy();
    else stranger.use(entry);
  }

  isStranger(socket: Socket): boolean {
    return this.#strangers.has(placeOf(socket));
  }

  /** The connection is a node's. Ends it where a worker has too many. */
  recognize(socket: Socket, { id, isManager }: Readonly<{ id: string; isManager: boolean }>): void {
    const place = placeOf(socket);
    const stranger = this.#strangers.get(place);
    if (stranger === undefined) return;
    this.#strangers.delete(place);
    stranger[Symbol.dispose]();
    if (!isManager) this.#countWorker(id, socket);
  }

  /** Ends all of them. */
  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #countWorker(id: string, socket: Socket): void {
    const count = this.#workers.get(id) ?? 0;
    if (count >= MAX_CONNECTIONS_PER_WORKER) return void socket.destroy();
    this.#workers.set(id, count + 1);
    socket.once('close', () => {
      const left = this.#workers.get(id)! - 1;
      if (left === 0) this.#workers.delete(id);
      else this.#workers.set(id, left);
    });
  }
}

/** Tells connections apart, also by their two sockets: that of TCP and that of TLS. */
function placeOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

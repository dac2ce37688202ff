import type { Socket } from 'node:net';

import type { Caller } from '@gantry/limiter/types.ts';

import { anonymousCaller, type Policy } from '../../policy.ts';
import type { Exchange } from '../exchange.ts';

/** How long the gateway reads on after it has sent its last answer on a connection. */
const LINGER_MS = 2000;

/** Requests of a connection that are handled at once. Further ones, of a client that awaits no answers, wait for their turn. */
export const MAX_PARALLEL = 10;
/** With this number of unanswered requests nothing more is read. */
const MAX_READ = 100;

/** A client's connection. When it closes, all of its requests end. */
export class Connection {
  readonly socket: Socket;
  /** Several when the client does not await answers; the first are handled. A `Set` would allocate a table for each request. */
  readonly exchanges: Exchange[] = [];
  /** The gateway reads no further requests, and closes the connection after the outstanding answers. */
  ending = false;
  #begun = 0;
  #address: { policy: Policy; text: string; caller: Caller } | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    // Node reads on for every request that it has read, and for every answer that waits to be sent.
    socket.on('resume', () => {
      if (this.exchanges.length >= MAX_READ) socket.pause();
    });
  }

  /** Returns whether it is handled now. Else `leave` returns it when it is its turn. */
  arrive(exchange: Exchange): boolean {
    this.exchanges.push(exchange);
    if (this.exchanges.length === MAX_READ) this.socket.pause();
    if (this.#begun >= MAX_PARALLEL) return false;
    this.#begun += 1;
    return true;
  }

  /** Returns the request whose turn it is now. */
  leave(exchange: Exchange): Exchange | undefined {
    const { exchanges, socket } = this;
    const at = exchanges.at(-1) === exchange ? exchanges.length - 1 : exchanges.indexOf(exchange);
    if (at < 0) return undefined;
    if (at === exchanges.length - 1) exchanges.pop();
    else exchanges.splice(at, 1);
    if (exchanges.length === MAX_READ - 1) socket.resume();
    if (at < this.#begun) this.#begun -= 1;
    if (socket.destroyed || this.#begun >= Math.min(MAX_PARALLEL, exchanges.length)) return undefined;
    this.#begun += 1;
    return exchanges[this.#begun - 1];
  }

  /** The caller of the connection's address, which most of its requests share. */
  caller(policy: Policy, address: string): Caller {
    const before = this.#address;
    if (before !== undefined && before.policy === policy && before.text === address) return before.caller;
    const caller = anonymousCaller(policy, address);
    this.#address = { policy, text: address, caller };
    return caller;
  }
}

/**
 * Ends a connection on which the client may still send. If it were closed at once, the kernel would send a reset, and
 * the client might never see the answer.
 */
export function endLingering(socket: Socket): void {
  socket.end();
  socket.resume();
  socket.once('end', () => socket.destroySoon());
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
}

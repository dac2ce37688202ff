import type { Socket } from 'node:net';

import type { Caller } from '@gantry/limiter/types.ts';

import { anonymousCaller, type Policy } from '../../policy.ts';
import type { Exchange } from '../exchange.ts';

/** How long the gateway reads on after it has sent its last answer on a connection. */
const LINGER_MS = 2000;

/** A client's connection. When it closes, all of its requests end. */
export class Connection {
  readonly socket: Socket;
  /** Has several entries when the client pipelines. A `Set` would allocate a table for every request. */
  readonly exchanges: Exchange[] = [];
  /** The gateway reads no further requests, and closes the connection after the outstanding answers. */
  ending = false;
  #address: { policy: Policy; text: string; caller: Caller } | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  leave(exchange: Exchange): void {
    const at = this.exchanges.indexOf(exchange);
    if (at === this.exchanges.length - 1) this.exchanges.pop();
    else if (at >= 0) this.exchanges.splice(at, 1);
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

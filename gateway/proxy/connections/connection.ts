import type { Socket } from 'node:net';

import type { Caller } from '@gantry/limiter/types.ts';

import { anonymousCaller, type Policy } from '../../policy.ts';
import type { Exchange } from '../exchange.ts';

/** How long a client may still send after it was told that nothing more is wanted of it. */
const LINGER_MS = 2000;

/** A client's connection. Its requests end with it, in whatever state they are. */
export class Connection {
  readonly socket: Socket;
  /** More than one when the client does not wait for answers. A `Set` would leave a table behind with every request. */
  readonly exchanges: Exchange[] = [];
  /** Nothing more is read from it; it ends after the answers that are still owed. */
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

  /** The caller that an address is; the requests of one connection mostly have one. */
  caller(policy: Policy, address: string): Caller {
    const before = this.#address;
    if (before !== undefined && before.policy === policy && before.text === address) return before.caller;
    const caller = anonymousCaller(policy, address);
    this.#address = { policy, text: address, caller };
    return caller;
  }
}

/**
 * Ends a connection on which something may still come. Closed at once, the kernel would answer that with a reset, and
 * the client might never see what it was told.
 */
export function endLingering(socket: Socket): void {
  socket.end();
  socket.resume();
  socket.once('end', () => socket.destroySoon());
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
}

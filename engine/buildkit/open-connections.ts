import type { Duplex } from 'node:stream';

import { EngineError } from '../lib/errors.ts';

/** Connections of all clients, and of one: a `bake` has a session for each of its targets. */
const [MAX_CONNECTIONS, MAX_OF_CLIENT] = [256, 128];

/** Counts the connections of clients. A client that cannot be told from others counts as one with them. */
export class OpenConnections {
  readonly #name: string;
  readonly #ofClients = new Map<string, number>();
  #all = 0;

  /** `name`: of the connections, in the refusal. */
  constructor(name: string) {
    this.#name = name;
  }

  /** Throws `unavailable` beyond the limits. */
  refuse(client = ''): void {
    if (this.#all >= MAX_CONNECTIONS || this.#of(client) >= MAX_OF_CLIENT)
      throw new EngineError('unavailable', `too many ${this.#name} are open: close some of them`);
  }

  /** Until the connection is closed. */
  add(connection: Duplex, client = ''): void {
    this.#change(client, 1);
    if (connection.destroyed) this.#change(client, -1);
    else connection.once('close', () => this.#change(client, -1));
  }

  #of(client: string): number {
    return this.#ofClients.get(client) ?? 0;
  }

  #change(client: string, by: 1 | -1): void {
    this.#all += by;
    const left = this.#of(client) + by;
    if (left > 0) this.#ofClients.set(client, left);
    else this.#ofClients.delete(client);
  }
}

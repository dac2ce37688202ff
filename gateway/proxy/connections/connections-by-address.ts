import type { Socket } from 'node:net';

import { addressGroup } from '@gantry/limiter/primary.ts';

import type { Policy } from '../../policy.ts';
import { peerOf } from './peer.ts';

/** The default limit of one address is a quarter of all connections, and at least this number. */
const MIN_COUNT = 32;

/** Counts the open connections of each address, so that silent ones from a single address cannot take all places. */
export class ConnectionsByAddress {
  readonly #open = new Map<string, number>();

  /** Counts a connection until it closes. Returns false when its address has too many. Trusted proxies are exempt. */
  enter({ trusted, primary, config }: Policy, socket: Socket): boolean {
    // A connection over a Unix socket has no address.
    if (socket.remoteAddress === undefined) return true;
    const address = peerOf({ socket });
    if (trusted.trusts(address)) return true;
    const most = Math.max(MIN_COUNT, config.sizes.connections / 4);
    const group = addressGroup(address, primary.ipv6PrefixBits);
    const open = this.#open.get(group) ?? 0;
    if (open >= most) return false;
    this.#open.set(group, open + 1);
    socket.once('close', () => this.#leave(group));
    return true;
  }

  #leave(group: string): void {
    const open = this.#open.get(group) ?? 0;
    if (open > 1) this.#open.set(group, open - 1);
    else this.#open.delete(group);
  }
}

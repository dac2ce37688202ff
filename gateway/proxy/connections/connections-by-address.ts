import type { Socket } from 'node:net';

import { addressGroup } from '@gantry/limiter/primary.ts';

import type { Policy } from '../../policy.ts';
import { peerOf } from '../headers.ts';

/** Without a number of its own an address may have a quarter of all, and so many in any case. */
const FEWEST = 32;

/** How many connections each address has open: silent ones of a single address must not take all the places. */
export class ConnectionsByAddress {
  readonly #open = new Map<string, number>();

  /** Counts a connection until it closes. False: its address has too many. Proxies have many clients. */
  enter({ trusted, primary, config }: Policy, socket: Socket): boolean {
    // What comes over a Unix socket has no address.
    if (socket.remoteAddress === undefined) return true;
    const address = peerOf({ socket });
    if (trusted.trusts(address)) return true;
    const { connections, connectionsPerAddress = Math.max(FEWEST, connections / 4) } = config.sizes;
    const group = addressGroup(address, primary.ipv6PrefixBits);
    const open = this.#open.get(group) ?? 0;
    if (open >= connectionsPerAddress) return false;
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

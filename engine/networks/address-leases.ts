import { EngineError } from '../lib/errors.ts';
import { cidrText, contains, ipText, lastOf, parseIp, type Cidr } from './cidr.ts';

/** The addresses in use of a network. The lowest free one is taken first, as in dockerd. */
export class AddressLeases {
  readonly #range: Cidr;
  readonly #used = new Set<number>();
  #lowest: number;

  /** `used` counts the gateway. */
  constructor(range: Cidr, used: readonly string[]) {
    this.#range = range;
    this.#lowest = range.base + 1;
    for (const ip of used) {
      const address = parseIp(ip);
      if (address !== undefined) this.#used.add(address);
    }
  }

  /** Takes `wanted`, or the lowest free address. */
  take(wanted?: string): string {
    const address = wanted === undefined ? this.#next() : this.#checked(wanted);
    this.#used.add(address);
    return ipText(address);
  }

  /** Frees an address; a free one is not an error. */
  release(ip: string): void {
    const address = parseIp(ip);
    if (address === undefined || !this.#used.delete(address)) return;
    this.#lowest = Math.min(this.#lowest, address);
  }

  #next(): number {
    const last = lastOf(this.#range);
    while (this.#lowest < last && this.#used.has(this.#lowest)) this.#lowest += 1;
    if (this.#lowest >= last) {
      throw new EngineError(
        'failed',
        `no available IPv4 addresses on this network's address pools: ${cidrText(this.#range)}`,
      );
    }
    return this.#lowest;
  }

  #checked(wanted: string): number {
    const address = parseIp(wanted);
    if (address === undefined) throw new EngineError('invalid', `invalid IPv4 address: ${wanted}`);
    const inside = contains(this.#range, address) && address !== this.#range.base && address !== lastOf(this.#range);
    if (!inside)
      throw new EngineError('invalid', `${wanted} is not an address of the network ${cidrText(this.#range)}`);
    if (this.#used.has(address)) throw new EngineError('forbidden', 'Address already in use');
    return address;
  }
}

/** The MAC address derived from an IPv4 address, so that the same address always has the same. */
export function macOf(ip: string): string {
  return ['02', '42', ...ip.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))].join(':');
}

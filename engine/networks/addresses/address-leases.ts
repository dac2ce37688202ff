import { EngineError } from '../../lib/errors.ts';
import { cidrText, contains, ipText, lastOf, parseIp, type Cidr } from './cidr.ts';

/** The addresses in use of a network. The lowest free one is taken first, as in dockerd. */
export class AddressLeases {
  readonly #subnet: Cidr;
  readonly #range: Cidr;
  readonly #used = new Set<number>();
  #lowest: number;

  /** `used` counts the gateway; `range`: where addresses are chosen, if not in the whole subnet. */
  constructor(subnet: Cidr, used: readonly string[], range = subnet) {
    this.#subnet = subnet;
    this.#range = range;
    this.#lowest = this.#first;
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
    if (contains(this.#range, address)) this.#lowest = Math.max(this.#first, Math.min(this.#lowest, address));
  }

  get #first(): number {
    return Math.max(this.#range.base, this.#subnet.base + 1);
  }

  #next(): number {
    const last = Math.min(lastOf(this.#range) + 1, lastOf(this.#subnet));
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
    if (!contains(this.#subnet, address)) {
      const reason = "It does not belong to any of this network's subnets";
      throw new EngineError('invalid', `Invalid address ${wanted}: ${reason}`);
    }
    const isEdge = address === this.#subnet.base || address === lastOf(this.#subnet);
    if (isEdge || this.#used.has(address)) throw new EngineError('forbidden', 'Address already in use');
    return address;
  }
}

/** The MAC address derived from an IPv4 address, so that the same address always has the same. */
export function macOf(ip: string): string {
  return ['02', '42', ...ip.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))].join(':');
}

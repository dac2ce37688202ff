import { randomBytes } from 'node:crypto';

import { EngineError } from '../../lib/errors.ts';
import { ipText, parseIp } from '../../lib/notations/ip-address.ts';
import { cidrText, contains, isEdge, lastOf, type Cidr } from './cidr.ts';

/** The addresses of one family in use of a network. The lowest free one is taken first, as in dockerd. */
export class AddressLeases {
  readonly #subnet: Cidr;
  readonly #range: Cidr;
  readonly #used = new Set<bigint>();
  #lowest: bigint;

  /** `used` counts the gateway; `range`: where addresses are chosen, if not in the whole subnet. */
  constructor(subnet: Cidr, used: readonly string[], range = subnet) {
    this.#subnet = subnet;
    this.#range = range;
    this.#lowest = this.#first;
    for (const ip of used) {
      const address = parseIp(ip);
      if (address !== undefined) this.#used.add(address.value);
    }
  }

  get subnet(): Cidr {
    return this.#subnet;
  }

  /** Whether `take` has an address to choose. */
  get hasFree(): boolean {
    return this.#next() !== undefined;
  }

  /** Takes `wanted`, or the lowest free address. */
  take(wanted?: string): string {
    const value = wanted === undefined ? this.#chosen() : this.#checked(wanted);
    this.#used.add(value);
    return ipText({ family: this.#subnet.family, value });
  }

  /** Frees an address; a free one is not an error. */
  release(ip: string): void {
    const address = parseIp(ip);
    if (address === undefined || !this.#used.delete(address.value) || !contains(this.#range, address)) return;
    if (address.value < this.#lowest && address.value >= this.#first) this.#lowest = address.value;
  }

  get #first(): bigint {
    const { base } = this.#subnet;
    return this.#range.base > base ? this.#range.base : base + 1n;
  }

  #next(): bigint | undefined {
    const { family } = this.#subnet;
    const last = lastOf(this.#range);
    const isFree = (value: bigint): boolean => !this.#used.has(value) && !isEdge(this.#subnet, { family, value });
    while (this.#lowest <= last && !isFree(this.#lowest)) this.#lowest += 1n;
    return this.#lowest > last ? undefined : this.#lowest;
  }

  #chosen(): bigint {
    const next = this.#next();
    if (next !== undefined) return next;
    const { family } = this.#subnet;
    throw new EngineError(
      'failed',
      `no available IPv${family} addresses on this network's address pools: ${cidrText(this.#range)}`,
    );
  }

  #checked(wanted: string): bigint {
    const address = parseIp(wanted);
    if (address === undefined) {
      throw new EngineError('invalid', `invalid IPv${this.#subnet.family} address: ${wanted}`);
    }
    if (!contains(this.#subnet, address)) {
      const reason = "It does not belong to any of this network's subnets";
      throw new EngineError('invalid', `Invalid address ${wanted}: ${reason}`);
    }
    if (isEdge(this.#subnet, address) || this.#used.has(address.value)) {
      throw new EngineError('forbidden', 'Address already in use');
    }
    return address.value;
  }
}

/** The address of a range that ends with a hardware address. */
export function addressOfMac({ family, base }: Cidr, mac: string): string {
  return ipText({ family, value: base + BigInt(`0x${mac.replaceAll(':', '')}`) });
}

/** A hardware address for a container without an address of IPv4. */
export function randomMac(): string {
  return ['02', '42', ...randomBytes(4).toString('hex').match(/../g)!].join(':');
}

/** The MAC address derived from an IPv4 address, so that the same address always has the same. */
export function macOf(ip: string): string {
  return ['02', '42', ...ip.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))].join(':');
}

import { createHash } from 'node:crypto';

import { EngineError, refuseIf } from '../../lib/errors.ts';
import type { Ip } from '../../lib/notations/ip-address.ts';
import { lastOf, overlaps, parseCidr, type Cidr } from './cidr.ts';

// dockerd's ranges in dockerd's order, so that users find the usual addresses.
const POOLS: readonly Cidr[] = [
  ...Array.from({ length: 15 }, (_, n) => ({ family: 4 as const, base: ip(172, 17 + n), prefixLength: 16 })),
  ...Array.from({ length: 16 }, (_, n) => ({ family: 4 as const, base: ip(192, 168, n * 16), prefixLength: 20 })),
];

/** The first range that overlaps none in use. `pools`: the setting's ranges; without any, the usual private ones. */
export function chooseSubnet(taken: readonly Cidr[], pools: readonly Cidr[] = []): Cidr {
  const free = (pools.length === 0 ? POOLS : pools).find((pool) => !taken.some((range) => overlaps(pool, range)));
  if (free === undefined) {
    throw new EngineError(
      'failed',
      'could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network',
    );
  }
  return free;
}

/** The prefix `fd…/48` of unique local addresses (RFC 4193) of a daemon: the same as long as it has its data root. */
export function uniqueLocalPrefix(seed: string): Cidr {
  const global = createHash('sha256').update(seed).digest('hex').slice(0, 10);
  return { family: 6, base: BigInt(`0xfd${global}`) << 80n, prefixLength: 48 };
}

const MAX_POOL_BITS = 16;

/** Reads `base=10.10.0.0/16,size=24`: the subnets of that size within the base. Throws `invalid`. */
export function parsePool(text: string): Cidr[] {
  const [, base = '', size = ''] = /^base=([^,]+),size=(\d{1,2})$/.exec(text) ?? [];
  const range = parseCidr(base)?.range;
  const prefixLength = Number(size);
  const bits = prefixLength - (range?.prefixLength ?? 0);
  if (range?.family !== 4 || size === '' || bits < 0 || bits > MAX_POOL_BITS || prefixLength > 30) {
    const form = 'is not of the form base=10.10.0.0/16,size=24, with at most 65536 subnets of 4 addresses or more';
    throw new EngineError('invalid', `default-address-pools: ${text} ${form}`);
  }
  const step = 1n << BigInt(32 - prefixLength);
  return Array.from({ length: 2 ** bits }, (_, n) => ({ ...range, base: range.base + BigInt(n) * step, prefixLength }));
}

/** Reads `--bip`: the bridge's own address with the prefix length of the network. */
export function parseBip(bip: string): { subnet: Cidr; gateway: Ip } {
  const parsed = parseCidr(bip);
  if (parsed?.range.family !== 4)
    throw new EngineError('invalid', `bip: ${bip} is not an address such as 172.30.0.1/16`);
  const { range, address } = parsed;
  if (range.prefixLength > 30 || range.prefixLength < 8) {
    throw new EngineError('invalid', `bip: the prefix length of ${bip} is not between 8 and 30`);
  }
  if (address.value === range.base || address.value === lastOf(range)) {
    throw new EngineError('invalid', `bip: ${bip} is the base of the range, not an address in it`);
  }
  return { subnet: range, gateway: address };
}

/** Reads `--fixed-cidr-v6`. Throws `invalid`. */
export function parseFixedCidrV6(text: string): Cidr {
  refuseIf(text === '', 'ipv6 needs a range of IPv6, such as --fixed-cidr-v6=fd00:1::/64');
  const range = parseCidr(text)?.range;
  if (range?.family !== 6) throw new EngineError('invalid', `${text} is not a range of IPv6 such as fd00:1::/64`);
  refuseIf(range.prefixLength > 126, `${text} is too small: it has no two addresses for the bridge and a container`);
  return range;
}

function ip(a: number, b: number, c = 0): bigint {
  return BigInt(((a * 256 + b) * 256 + c) * 256);
}

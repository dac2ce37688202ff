import { ADDRESS_BITS, ipText, parseIp, type Family, type Ip } from '../../lib/notations/ip-address.ts';

/** A range of addresses of one family. `base` is its first address, as a number. */
export type Cidr = Readonly<{ family: Family; base: bigint; prefixLength: number }>;

/**
 * Reads `172.17.0.1/16`; the host part is dropped from the range and returned beside it. `undefined` for any other
 * form.
 */
export function parseCidr(text: string): { range: Cidr; address: Ip } | undefined {
  const [ip, length, ...rest] = text.split('/');
  if (ip === undefined || length === undefined || rest.length > 0 || !/^\d{1,3}$/.test(length)) return undefined;
  const prefixLength = Number(length);
  const address = parseIp(ip);
  if (address === undefined || prefixLength > ADDRESS_BITS[address.family]) return undefined;
  return { range: rangeOf(address, prefixLength), address };
}

export function cidrText({ family, base, prefixLength }: Cidr): string {
  return `${ipText({ family, value: base })}/${prefixLength}`;
}

/** The address at an offset from the base of the range. */
export function addressAt({ family, base }: Cidr, place: number): string {
  return ipText({ family, value: base + BigInt(place) });
}

export function rangeOf({ family, value }: Ip, prefixLength: number): Cidr {
  const shift = BigInt(ADDRESS_BITS[family] - prefixLength);
  return { family, base: (value >> shift) << shift, prefixLength };
}

/** The last address of a range, which in IPv4 is its broadcast address. */
export function lastOf({ family, base, prefixLength }: Cidr): bigint {
  return base + (1n << BigInt(ADDRESS_BITS[family] - prefixLength)) - 1n;
}

export function contains(range: Cidr, { family, value }: Ip): boolean {
  return family === range.family && value >= range.base && value <= lastOf(range);
}

export function overlaps(a: Cidr, b: Cidr): boolean {
  return a.family === b.family && a.base <= lastOf(b) && b.base <= lastOf(a);
}

/** Whether an address of a subnet is reserved: its first one, and in IPv4 the last. */
export function isEdge(subnet: Cidr, { value }: Ip): boolean {
  return value === subnet.base || (subnet.family === 4 && value === lastOf(subnet));
}

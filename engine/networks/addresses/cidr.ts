/** A range of IPv4 addresses. `base` is its first address, as a number. */
export type Cidr = Readonly<{ base: number; prefixLength: number }>;

/** Reads `172.17.0.1/16`; the host part is dropped from the range and returned beside it. `undefined`: not that form. */
export function parseCidr(text: string): { range: Cidr; address: number } | undefined {
  const [ip, length, ...rest] = text.split('/');
  if (ip === undefined || length === undefined || rest.length > 0 || !/^\d{1,2}$/.test(length)) return undefined;
  const prefixLength = Number(length);
  const address = parseIp(ip);
  if (address === undefined || prefixLength > 32) return undefined;
  return { range: rangeOf(address, prefixLength), address };
}

/** `undefined` if it is not four numbers below 256. */
export function parseIp(text: string): number | undefined {
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return undefined;
  const parts = text.split('.').map(Number);
  if (parts.some((part) => part > 255)) return undefined;
  return parts.reduce((all, part) => all * 256 + part, 0);
}

export function ipText(address: number): string {
  return [address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255].join('.');
}

export function cidrText({ base, prefixLength }: Cidr): string {
  return `${ipText(base)}/${prefixLength}`;
}

export function rangeOf(address: number, prefixLength: number): Cidr {
  const size = 2 ** (32 - prefixLength);
  return { base: Math.floor(address / size) * size, prefixLength };
}

/** The last address of a range, which is its broadcast address. */
export function lastOf({ base, prefixLength }: Cidr): number {
  return base + 2 ** (32 - prefixLength) - 1;
}

export function contains(range: Cidr, address: number): boolean {
  return address >= range.base && address <= lastOf(range);
}

export function overlaps(a: Cidr, b: Cidr): boolean {
  return a.base <= lastOf(b) && b.base <= lastOf(a);
}

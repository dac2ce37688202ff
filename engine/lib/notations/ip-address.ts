import { isIPv6 } from 'node:net';

export type Family = 4 | 6;

/** An address of either family, as a number. */
export type Ip = Readonly<{ family: Family; value: bigint }>;

/** The length of an address, in bits. */
export const ADDRESS_BITS: Readonly<Record<Family, number>> = { 4: 32, 6: 128 };

const GROUP_BITS = 16n;

/** Whether a valid address, or a range of them, is of IPv6; nothing else is checked. */
export function isSix(ip: string): boolean {
  return ip.includes(':');
}

/** Reads `172.17.0.1` or `fd00::1`. `undefined` for anything else, and for an address with a zone. */
export function parseIp(text: string): Ip | undefined {
  const value = isSix(text) ? parseSix(text) : parseFour(text);
  return value === undefined ? undefined : { family: isSix(text) ? 6 : 4, value };
}

/** The usual text form; for IPv6 that of RFC 5952. */
export function ipText({ family, value }: Ip): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.');
  const groups = Array.from({ length: 8 }, (_, n) =>
    ((value >> (GROUP_BITS * BigInt(7 - n))) & 0xffffn).toString(16),
  ).join(':');
  const zeros = [...groups.matchAll(/(?<![^:])0(:0)+(?![^:])/g)].map(([run]) => run);
  const longest = zeros.toSorted((a, b) => b.length - a.length)[0];
  if (longest === undefined) return groups;
  const at = groups.search(new RegExp(`(?<![^:])${longest}(?![^:])`));
  return `${groups.slice(0, at).replace(/:$/, '')}::${groups.slice(at + longest.length).replace(/^:/, '')}`;
}

/** The bytes of an address as the kernel takes them. Throws for an invalid address. */
export function ipBytes(text: string): Buffer {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`${text} is not an address`);
  return Buffer.from(ip.value.toString(16).padStart(ADDRESS_BITS[ip.family] / 4, '0'), 'hex');
}

/** The address in the kernel's 4 or 16 bytes. */
export function ipOfBytes(bytes: Buffer): string {
  return ipText({ family: bytes.length === 4 ? 4 : 6, value: BigInt(`0x${bytes.toString('hex')}`) });
}

function parseFour(text: string): bigint | undefined {
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return undefined;
  const parts = text.split('.').map(Number);
  if (parts.some((part) => part > 255)) return undefined;
  return BigInt(parts.reduce((all, part) => all * 256 + part, 0));
}

function parseSix(text: string): bigint | undefined {
  if (!isIPv6(text) || text.includes('%')) return undefined;
  // The last 32 bits may be written as in IPv4.
  const [, before = '', four] = /^(.*:)([\d.]+\.\d+)$/.exec(text) ?? [];
  const tail = four === undefined ? undefined : parseFour(four);
  const plain =
    tail === undefined ? text : `${before}${(tail >> GROUP_BITS).toString(16)}:${(tail & 0xffffn).toString(16)}`;
  const [left = [], right = []] = plain.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const missing = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...missing, ...right].reduce((all, group) => (all << GROUP_BITS) + BigInt(`0x${group}`), 0n);
}

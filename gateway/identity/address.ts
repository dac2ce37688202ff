import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP } from 'node:net';

import type { Config } from '../config/schema.ts';

/** The problem of an address or CIDR range; undefined: none. */
export function cidrProblem(range: string): string | undefined {
  const [address = '', prefix, ...rest] = range.split('/');
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  const fits = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= most);
  return family !== 0 && fits && rest.length === 0 ? undefined : `an address or CIDR range is expected, not "${range}"`;
}

/** Addresses, alone and as CIDR ranges. */
export class AddressRanges {
  readonly #ranges = new BlockList();
  readonly #none: boolean;

  constructor(ranges: readonly string[]) {
    this.#none = ranges.length === 0;
    for (const range of ranges) {
      const [address = '', prefix] = range.split('/');
      const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
      if (prefix === undefined) this.#ranges.addAddress(address, family);
      else this.#ranges.addSubnet(address, Number(prefix), family);
    }
  }

  has(address: string): boolean {
    if (this.#none) return false;
    const plain = withoutMapping(address);
    return this.#ranges.check(plain, isIP(plain) === 4 ? 'ipv4' : 'ipv6');
  }
}

export function isForwardedFor(header: string): boolean {
  return header.toLowerCase() === 'x-forwarded-for';
}

/** The proxies that are believed when they name their client. */
export class TrustedProxies {
  /** They name it in X-Forwarded-For, a list; else in a header with one address. */
  readonly usesList: boolean;
  readonly #ranges: AddressRanges;
  /** The name of that header, as it is written in the settings. */
  readonly header: string;
  readonly #key: string;
  readonly #hops: number | undefined;

  constructor(ranges: readonly string[], { header, hops }: Pick<Config['clientAddress'], 'header' | 'hops'>) {
    this.#ranges = new AddressRanges(ranges);
    this.header = header;
    this.#key = header.toLowerCase();
    this.#hops = hops;
    this.usesList = isForwardedFor(header);
  }

  trusts(address: string): boolean {
    return this.#ranges.has(address);
  }

  namesClient(headers: IncomingHttpHeaders): boolean {
    return headers[this.#key] !== undefined;
  }

  /** Finds the sender's address. A header that names none leaves the proxy's own. */
  clientOf(peer: string, headers: IncomingHttpHeaders): string {
    const value = headers[this.#key];
    if (value === undefined || !this.trusts(peer)) return peer;
    if (!this.usesList) return addressIn(String(value).trim()) ?? peer;
    return this.#hops === undefined
      ? this.#lastStranger(peer, String(value))
      : entryFromEnd(peer, String(value), this.#hops);
  }

  /**
   * Read from the right, the first address that is not one of our proxies. Entries further left were written by the sender. An entry
   * that is no address ends the walk at the last proxy: from there on nothing can be believed.
   */
  #lastStranger(peer: string, forwardedFor: string): string {
    let client = peer;
    let end = forwardedFor.length;
    while (end >= 0) {
      const comma = forwardedFor.lastIndexOf(',', end - 1);
      const address = addressIn(forwardedFor.slice(comma + 1, end).trim());
      if (address === undefined) return client;
      client = address;
      if (comma <= 0 || !this.trusts(address)) return client;
      end = comma;
    }
    return client;
  }
}

/** The entry that the outermost of so many proxies wrote. With fewer entries, the first one. */
function entryFromEnd(peer: string, forwardedFor: string, hops: number): string {
  let client = peer;
  for (const entry of forwardedFor.split(',').slice(-hops).toReversed()) {
    const address = addressIn(entry.trim());
    if (address === undefined) return client;
    client = address;
  }
  return client;
}

/** Some proxies add the port: `192.0.2.1:1234`, `[2001:db8::1]:1234`. */
function addressIn(text: string): string | undefined {
  if (isIP(text) !== 0) return withoutMapping(text);
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1];
  return bare !== undefined && isIP(bare) !== 0 ? withoutMapping(bare) : undefined;
}

function withoutMapping(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

/** A name or address of this machine alone. */
export function isLoopback(host: string): boolean {
  const plain = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return plain === 'localhost' || plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}

/** Writes DER (X.690), as far as certificates need it. OpenSSL does all reading, but for what `contentOf` takes apart. */
export type Der = Buffer;

export function tlv(tag: number, ...content: readonly Uint8Array[]): Der {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

export const sequence = (...parts: readonly Der[]): Der => tlv(0x30, ...parts);
export const set = (...parts: readonly Der[]): Der => tlv(0x31, ...parts);
export const boolean = (value: boolean): Der => tlv(0x01, Buffer.from([value ? 0xff : 0]));
export const octets = (bytes: Uint8Array): Der => tlv(0x04, bytes);
export const utf8 = (text: string): Der => tlv(0x0c, Buffer.from(text));
/** `[n] EXPLICIT`. */
export const explicit = (n: number, ...parts: readonly Der[]): Der => tlv(0xa0 | n, ...parts);

/** Bits with the first one in front; `unused` of the last byte. */
export const bits = (bytes: Uint8Array, unused = 0): Der => tlv(0x03, Buffer.from([unused]), bytes);

/** Encodes a positive number; leading zeros go, and one is added where the first bit would be taken for a sign. */
export function integer(value: Uint8Array): Der {
  let start = 0;
  while (start < value.length - 1 && value[start] === 0) start += 1;
  const bytes = value.subarray(start);
  return bytes[0]! >= 0x80 ? tlv(0x02, Buffer.from([0]), bytes) : tlv(0x02, bytes);
}

export function oid(text: string): Der {
  const [first, second, ...rest] = text.split('.').map(Number) as [number, number, ...number[]];
  return tlv(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** UTCTime up to 2049, GeneralizedTime from then on (RFC 5280, 4.1.2.5). */
export function time(instant: Temporal.Instant): Der {
  const digits = instant.toString({ smallestUnit: 'second' }).replaceAll(/[-:T]/g, '');
  return digits < '2050' ? tlv(0x17, Buffer.from(digits.slice(2))) : tlv(0x18, Buffer.from(digits));
}

/** The values in a constructed one that OpenSSL has read before, each with its tag and length. */
export function contentOf(der: Der): Der[] {
  const parts: Der[] = [];
  const [first, end] = extentOf(der, 0);
  for (let at = first; at < end;) {
    const next = extentOf(der, at)[1];
    parts.push(der.subarray(at, next));
    at = next;
  }
  return parts;
}

/** Where the content of the value at this place begins and ends. */
export function extentOf(der: Der, at: number): [first: number, end: number] {
  const short = der[at + 1]!;
  if (short < 0x80) return [at + 2, at + 2 + short];
  const bytes = short & 0x7f;
  const first = at + 2 + bytes;
  return [first, first + der.readUIntBE(at + 2, bytes)];
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

function base128(value: number): number[] {
  const digits = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) digits.unshift(0x80 | (rest % 128));
  return digits;
}

import { isIP, SocketAddress } from 'node:net';

/** A header of version 1, with the end of its line. */
const MAX_LINE_BYTES = 107;
/** A header of version 2, with its TLVs; real ones have a few hundred bytes. */
const MAX_BINARY_BYTES = 4096;
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const LINE_START = Buffer.from('PROXY ');
const FIXED_BYTES = 16;
const [LOCAL, PROXY] = [0x20, 0x21];
const [TCP4, TCP6] = [0x11, 0x21];

/** `address`: the client's; undefined: the proxy speaks for itself, or for a client without an IP address. */
export type ProxyHeader = Readonly<{ bytes: number; address: string | undefined }>;

/** Reads the header of the PROXY protocol, version 1 or 2, that these bytes begin with. */
export function readProxyHeader(bytes: Buffer): ProxyHeader | 'incomplete' | 'invalid' {
  if (startsLike(bytes, SIGNATURE)) return readBinary(bytes);
  return startsLike(bytes, LINE_START) ? readLine(bytes) : 'invalid';
}

/** As far as there are bytes. */
function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.subarray(0, length).equals(start.subarray(0, length));
}

function readLine(bytes: Buffer): ProxyHeader | 'incomplete' | 'invalid' {
  const end = bytes.subarray(0, MAX_LINE_BYTES).indexOf('\r\n');
  if (end < 0) return bytes.length < MAX_LINE_BYTES ? 'incomplete' : 'invalid';
  const [, family = '', source = '', target = '', ...ports] = bytes.toString('latin1', 0, end).split(' ');
  if (family === 'UNKNOWN') return { bytes: end + 2, address: undefined };
  const version = { TCP4: 4, TCP6: 6 }[family];
  const isValid =
    version !== undefined &&
    isIP(source) === version &&
    isIP(target) === version &&
    ports.length === 2 &&
    ports.every((port) => /^\d{1,5}$/.test(port));
  return isValid ? { bytes: end + 2, address: source } : 'invalid';
}

function readBinary(bytes: Buffer): ProxyHeader | 'incomplete' | 'invalid' {
  if (bytes.length < FIXED_BYTES) return 'incomplete';
  const [command, family] = [bytes[12], bytes[13]];
  const end = FIXED_BYTES + bytes.readUInt16BE(14);
  if ((command !== LOCAL && command !== PROXY) || end > MAX_BINARY_BYTES) return 'invalid';
  if (bytes.length < end) return 'incomplete';
  if (command === LOCAL || (family !== TCP4 && family !== TCP6)) return { bytes: end, address: undefined };
  const addresses = bytes.subarray(FIXED_BYTES, end);
  if (addresses.length < (family === TCP4 ? 12 : 36)) return 'invalid';
  return { bytes: end, address: family === TCP4 ? ipv4(addresses) : ipv6(addresses) };
}

function ipv4(bytes: Buffer): string {
  return bytes.subarray(0, 4).join('.');
}

function ipv6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, n) => bytes.readUInt16BE(2 * n).toString(16));
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address;
}

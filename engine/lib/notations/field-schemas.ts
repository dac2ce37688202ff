import { Type } from 'typebox';

import { parseIp } from './ip-address.ts';
import { isClusterName, isContainerName } from './names.ts';

/** The longest text of a field in a message of another machine, unless its schema names another limit. */
export const MAX_TEXT_BYTES = 4096;

/** Bytes of one client or node in a record of the cluster: etcd takes 1.5 MB at a time. */
export const MAX_RECORD_BYTES = 512 * 1024;

const SHORTENED = ' ...';
const MAX_MOMENT_LETTERS = 64;
/** 224.0.0.0: groups, reserved addresses and the broadcast follow. */
const FIRST_GROUP = 224n << 24n;

/** A text of so many bytes at most. */
export function limitedText(maxBytes = MAX_TEXT_BYTES) {
  return Type.Refine(
    Type.String(),
    (text) => Buffer.byteLength(text) <= maxBytes,
    () => `must have at most ${maxBytes} bytes`,
  );
}

/** A value that has so many bytes at most as JSON. */
export function isWithin(maxBytes: number, value: unknown): boolean {
  return Buffer.byteLength(JSON.stringify(value)) <= maxBytes;
}

/** The beginning of a text that is too long for a field, and a sign of that. */
export function shortenText(text: string, maxBytes = MAX_TEXT_BYTES): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes - SHORTENED.length));
  return `${text.slice(0, read)}${SHORTENED}`;
}

/** An id of any record: no path, no separator of a line or a rule. */
export const IdField = Type.String({ pattern: '^[0-9a-z]{1,64}$' });

/** An address of IPv4 or IPv6. */
export const IpField = Type.Refine(
  Type.String(),
  (text) => parseIp(text) !== undefined,
  () => 'must be an IP address',
);

/** The address of a machine for others: of one machine, and not `0.0.0.0`. */
export const HostField = Type.Refine(Type.String(), isHost, () => 'must be the IP address of a machine');

/** An address of IPv4, such as in overlays. */
export const Ip4Field = Type.Refine(
  Type.String(),
  (text) => parseIp(text)?.family === 4,
  () => 'must be an IPv4 address',
);

/** An address of IPv4 with the length of its prefix. */
export const Cidr4Field = Type.Refine(
  Type.String(),
  (text) => {
    const [ip = '', length = '', ...rest] = text.split('/');
    return rest.length === 0 && parseIp(ip)?.family === 4 && /^\d{1,2}$/.test(length) && Number(length) <= 32;
  },
  () => 'must be an IPv4 address with a prefix length',
);

/** `ip:port`, an address of IPv6 in brackets. */
export const HostPortField = Type.Refine(Type.String(), isHostPort, () => 'must be an IP address and a port');

/** A moment in RFC 3339, as `Temporal.Instant.from` takes it. */
export const MomentField = Type.Refine(Type.String(), isMoment, () => 'must be a time in RFC 3339');

/** A number of a port; 0 where one is still to be chosen. */
export const PortField = Type.Integer({ minimum: 0, maximum: 65_535 });

/** The numbers that clients of docker can write: more would be out of range for times, and for programs that get them. */
export const MAX_INT64 = 2 ** 63;

/** A number of 64 bits with a sign, such as nanoseconds. */
export const IntegerField = Type.Integer({ minimum: -MAX_INT64, maximum: MAX_INT64 });

/** A count, or an amount. */
export const CountField = Type.Integer({ minimum: 0, maximum: MAX_INT64 });

/** The name of a container, without a slash. */
export const ContainerNameField = Type.Refine(
  Type.String(),
  (text) => text.length <= MAX_TEXT_BYTES && isContainerName(text),
  () => 'must be a name of a container: [a-zA-Z0-9_-][a-zA-Z0-9_.-]*',
);

/** The name of a service or a network of the cluster. */
export const ClusterNameField = Type.Refine(Type.String(), isClusterName, () => 'must be a DNS name component');

/** Whether packets to an address reach one machine: no group of them, no broadcast, no unspecified address. */
export function isHost(text: string): boolean {
  const ip = parseIp(text);
  if (ip === undefined || ip.value === 0n) return false;
  return ip.family === 4 ? ip.value < FIRST_GROUP : ip.value >> 120n !== 0xffn;
}

function isHostPort(text: string): boolean {
  const [, inBrackets, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const ip = parseIp(inBrackets ?? plain ?? '');
  return ip?.family === (inBrackets === undefined ? 4 : 6) && Number(port) <= 65_535;
}

function isMoment(text: string): boolean {
  try {
    Temporal.Instant.from(text);
    return text.length <= MAX_MOMENT_LETTERS;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

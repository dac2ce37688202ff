import { lookup } from 'node:dns/promises';
import { isIPv4, isIPv6 } from 'node:net';

import type { MountRequest } from '../../host/mounts/mount-by-words.ts';
import { refuseIf } from '../../lib/errors.ts';
import type { VolumeOptions } from '../driver.ts';

const KNOWN = ['type', 'device', 'o', 'size'];
/** An option that needs others. */
const NEEDED: readonly (readonly [option: string, others: readonly string[]])[] = [
  ['device', ['type']],
  ['type', ['device']],
  ['o', ['device', 'type']],
];
const SIZE = /^(\d+(\.\d+)?) ?([kmgtp]?)i?b?$/i;
/** File systems that the kernel mounts by the address of their server. */
const BY_ADDRESS = ['nfs', 'nfs4', 'cifs'];

/** Throws `invalid` for options that the driver `local` does not know, or that lack another one. */
export function checkOptions(options: VolumeOptions): void {
  const unknown = Object.keys(options).find((option) => !KNOWN.includes(option));
  refuseIf(unknown !== undefined, `invalid option: "${unknown}"`);
  for (const [option, others] of NEEDED) {
    const missing = Object.hasOwn(options, option) && others.find((other) => !Object.hasOwn(options, other));
    refuseIf(typeof missing === 'string', `missing required option: "${missing}"`);
  }
  const isMount = mountRequest(options) !== undefined;
  refuseIf(
    sizeOf(options) > 0 && isMount,
    'a size is of a folder: that of a mount is one of its options, as in o=size=10m',
  );
}

/** The most that a volume may hold, in bytes; 0 without a limit. Throws `invalid`. */
export function sizeOf({ size }: VolumeOptions): number {
  if (size === undefined) return 0;
  const [, digits = '', , unit = ''] = SIZE.exec(size) ?? [];
  refuseIf(digits === '', `invalid size: '${size}'`);
  return Math.trunc(Number(digits) * 1024 ** ' kmgtp'.indexOf(unit.toLowerCase() || ' '));
}

/** The mount of a volume with these options; undefined for a plain folder. */
export function mountRequest({ type = '', device = '', o = '' }: VolumeOptions): MountRequest | undefined {
  return type === '' && device === '' ? undefined : { type, device, options: o };
}

/** The kernel knows no names of servers: `addr=HOST` becomes its address. */
export async function withAddress(request: MountRequest): Promise<MountRequest> {
  const host = /(?:^|,)addr=([^,]+)/.exec(request.options)?.[1];
  if (host === undefined || !BY_ADDRESS.includes(request.type) || isIPv4(host) || isIPv6(host)) return request;
  try {
    const { address } = await lookup(host, { order: 'ipv4first' });
    return { ...request, options: request.options.replace(`addr=${host}`, `addr=${address}`) };
  } catch (error) {
    throw new Error(`error resolving passed in network volume address: lookup ${host}: no such host`, { cause: error });
  }
}

import { EngineError, refuseIf } from '../../lib/errors.ts';
import { parseIp, type Family } from '../../lib/notations/ip-address.ts';
import { contains, parseCidr } from '../addresses/cidr.ts';
import { poolsByFamily } from '../addresses/pools.ts';
import type { NetworkRecord } from '../store.ts';

/** Whether a network can give an address that the client chose. Throws `invalid` in dockerd's words. */
export function checkPlace({ custom }: NetworkRecord, family: Family, ip: string | undefined): void {
  if (ip === undefined || ip === '') return;
  refuseIf(custom === undefined, 'user specified IP address is supported on user defined networks only');
  refuseIf(parseIp(ip)?.family !== family, `Invalid IPv${family} address: ${ip})`);
  const { four, six } = poolsByFamily(custom!.ipam.pools);
  refuseIf(
    (family === 4 ? four : six).length === 0,
    'user specified IP address is supported only when connecting to networks with user configured subnets',
  );
  const isWithin = (family === 4 ? four : six).some(({ subnet }) => {
    const range = parseCidr(subnet)?.range;
    return range === undefined || contains(range, parseIp(ip)!);
  });
  refuseIf(!isWithin, `no configured subnet or ip-range contain the IP address ${ip}`);
}

/** The address as the kernel writes it. Throws `invalid`. */
export function checkedMac(mac: string): string {
  const text = mac.toLowerCase().replaceAll('-', ':');
  // The lowest bit of the first byte marks a multicast address, which no link can have.
  if (!/^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$/.test(text)) {
    throw new EngineError('invalid', `invalid MAC address: ${mac}`);
  }
  return text;
}

import { parseIp } from '../../lib/notations/ip-address.ts';
import { addressesOf } from '../endpoints/endpoint.ts';
import type { Networks } from '../networks.ts';
import type { NetworkWire } from '../schema.ts';
import type { NetworkRecord } from '../store.ts';
import { storedAddresses } from './choose.ts';
import { cidrText, contains, lastOf } from './cidr.ts';
import type { Addresses } from './pools.ts';

/** Use of the addresses of a network, for each of its subnets; nothing without addresses of the engine. */
export function presentStatus(networks: Networks, network: NetworkRecord): Pick<NetworkWire, 'Status'> {
  if (network.subnet === undefined && network.ipv6 === undefined) return {};
  const { ipv4, ipv6, more = [] } = storedAddresses(network);
  const taken = networks.membersOf(network.id).flatMap(addressesOf);
  const subnets = [ipv4, ipv6, ...more].filter((one) => one !== undefined);
  return {
    Status: { IPAM: { Subnets: Object.fromEntries(subnets.map((one) => [cidrText(one.subnet), useOf(one, taken)])) } },
  };
}

/** Reserved addresses count as in use: the first of a subnet, in IPv4 the last, the gateway and auxiliary ones. */
function useOf(
  { subnet, range, gateway, auxiliary }: Addresses,
  taken: readonly string[],
): { IPsInUse: number; DynamicIPsAvailable: number } {
  const { family, base } = subnet;
  const edges = family === 4 ? [base, lastOf(subnet)] : [base];
  const given = [gateway, ...auxiliary, ...taken].flatMap((text) => parseIp(text) ?? []);
  const used = new Set([...edges, ...given.filter((ip) => contains(subnet, ip)).map(({ value }) => value)]);
  const inRange = [...used].filter((value) => contains(range, { family, value })).length;
  return { IPsInUse: used.size, DynamicIPsAvailable: atMost(lastOf(range) - range.base + 1n - BigInt(inRange)) };
}

/** JSON has no larger whole numbers; a subnet of IPv6 has more addresses. */
function atMost(count: bigint): number {
  return count > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(count);
}

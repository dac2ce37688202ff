import { parseIp } from '../../lib/notations/ip-address.ts';
import { contains, parseCidr } from '../addresses/cidr.ts';
import type { NetworkRecord } from '../store.ts';
import type { ClusterNetwork } from './members/members.ts';

/** A network of the cluster as a record of this node; `local`: its own address for the other nodes. */
export function recordOf(network: ClusterNetwork, local: string): NetworkRecord {
  const { id, name, createdAt, labels, options, internal, ingress, vni, subnets, attachable = false } = network;
  const pools = subnets.map(({ subnet, gateway, range, auxiliary }) => ({
    subnet,
    gateway,
    ...(range !== undefined && { range }),
    ...(auxiliary !== undefined && { auxiliary }),
  }));
  const [first, ...more] = pools;
  return {
    id,
    name,
    driver: 'overlay',
    createdAt: Temporal.Instant.from(createdAt),
    ...(first !== undefined && { subnet: first.subnet, gateway: first.gateway }),
    ...(more.length > 0 && { more: more.map(({ subnet, gateway }) => ({ subnet, gateway })) }),
    overlay: { vni, local, ingress },
    custom: {
      internal,
      attachable,
      enableIPv6: false,
      options,
      labels,
      ipam: { driver: 'default', options: null, pools },
    },
  };
}

/** The range of the network that has an address. */
export function subnetOf({ id, subnet, more = [] }: NetworkRecord, ip: string): { prefixLength: number } {
  const address = parseIp(ip);
  for (const text of [subnet ?? '', ...more.map((one) => one.subnet)]) {
    const range = parseCidr(text)?.range;
    if (range !== undefined && address !== undefined && contains(range, address)) return range;
  }
  throw new Error(`the address ${ip} is in no range of the network ${id}`);
}

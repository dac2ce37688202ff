import { EngineError } from '../../lib/errors.ts';
import { parseIp } from '../../lib/notations/ip-address.ts';
import { cidrText, contains, overlaps, parseCidr, type Cidr } from '../../networks/addresses/cidr.ts';
import type { NetworkRecord } from '../state/records.ts';
import type { View } from '../state/view.ts';

type Subnet = NetworkRecord['subnets'][number];

/** The pools of a cluster that was made without any, and the size of the networks in them. */
export const DEFAULT_POOLS = ['10.0.0.0/8'];
export const DEFAULT_SUBNET_SIZE = 24;
const IPV4_BITS = 32;

/** The ranges of all networks of the cluster. */
export function rangesIn(view: View): Cidr[] {
  return [...view.all('network')].flatMap(({ subnets }) =>
    subnets.flatMap(({ subnet }) => {
      const range = parseCidr(subnet)?.range;
      return range === undefined ? [] : [range];
    }),
  );
}

/** The first range of the cluster's pools that no network has, and no node either: its tasks could not reach that node. */
export function freeSubnet(view: View, networks: readonly Cidr[]): Subnet {
  const { addressPools = DEFAULT_POOLS, subnetSize = DEFAULT_SUBNET_SIZE } = view.get('cluster', '') ?? {};
  const nodes = [...view.all('node')].flatMap(({ status, dataPath = '' }) =>
    [status.address, dataPath].flatMap((address) => parseIp(address) ?? []),
  );
  for (const pool of addressPools) {
    for (const range of partsOf(pool, subnetSize)) {
      if (networks.some((other) => overlaps(other, range)) || nodes.some((ip) => contains(range, ip))) continue;
      return { subnet: cidrText(range), gateway: gatewayIn(range) };
    }
  }
  throw new EngineError('failed', 'could not find an available, non-overlapping IPv4 address pool');
}

function* partsOf(pool: string, prefixLength: number): Generator<Cidr> {
  const whole = parseCidr(pool)?.range;
  if (whole === undefined) return;
  const size = 1n << BigInt(IPV4_BITS - prefixLength);
  const end = whole.base + (1n << BigInt(IPV4_BITS - whole.prefixLength));
  for (let { base } = whole; base < end; base += size) yield { family: 4, base, prefixLength };
}

function gatewayIn(range: Cidr): string {
  return cidrText({ ...range, base: range.base + 1n, prefixLength: IPV4_BITS }).split('/')[0]!;
}

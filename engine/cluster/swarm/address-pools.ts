import { refuseIf } from '../../lib/errors.ts';
import { isWithin } from '../../lib/notations/field-schemas.ts';
import { parseCidr } from '../../networks/addresses/cidr.ts';
import { DEFAULT_SUBNET_SIZE } from '../networks/subnets.ts';
import type { ClusterRecord } from '../state/records.ts';

/** With a longer prefix a network has no room for its gateway, services and tasks. */
const MAX_SUBNET_SIZE = 29;
const MAX_POOLS_BYTES = 64 * 1024;

/** The address pools of a new cluster, checked; a size without pools counts for nothing, as with dockerd. */
export function readAddressPools(
  pools: readonly string[],
  size = 0,
): Pick<ClusterRecord, 'addressPools' | 'subnetSize'> {
  if (pools.length === 0) return {};
  const subnetSize = size === 0 ? DEFAULT_SUBNET_SIZE : size;
  refuseIf(!isWithin(MAX_POOLS_BYTES, pools), 'the address pools of a cluster are 64 KB at most');
  refuseIf(subnetSize > MAX_SUBNET_SIZE, `subnet size is out of range: ${subnetSize}`);
  for (const pool of pools) {
    const range = parseCidr(pool)?.range;
    refuseIf(range === undefined, `invalid base pool ${pool}: invalid CIDR address: ${pool}`);
    refuseIf(range?.family === 6, `invalid base pool ${pool}: overlay networks have addresses of IPv4 only`);
    const isTooSmall = range !== undefined && range.prefixLength > subnetSize;
    refuseIf(isTooSmall, `invalid CIDR: "${pool}". Subnet size is too small for pool: ${subnetSize}`);
  }
  return { addressPools: pools, subnetSize };
}

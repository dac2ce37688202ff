import { Netlink } from '../../host/network/netlink.ts';
import { EngineError } from '../../lib/errors.ts';
import { ipText, parseIp } from '../../lib/notations/ip-address.ts';
import { cidrText, rangeOf, type Cidr } from '../addresses/cidr.ts';
import { chooseSubnet, parseBip } from '../addresses/subnets.ts';
import type { NetworkRecord } from '../store.ts';
import { addressOf, findBridge, gatewayOf, rangesInUse } from './bridge-link.ts';

type Settings = Readonly<{ bridge: string; bip: string; dataRoot: string; pools: readonly Cidr[] }>;

/**
 * The address range of the default bridge: the setting, the stored one, the one of an existing bridge, or the first free
 * range.
 */
export function defaultRange(settings: Settings, stored: NetworkRecord): { subnet: string; gateway: string } {
  const { bridge, bip, dataRoot, pools } = settings;
  using route = new Netlink();
  const link = findBridge(route, bridge, dataRoot);
  if (bip !== '') {
    const { subnet, gateway } = parseBip(bip);
    return { subnet: cidrText(subnet), gateway: ipText(gateway) };
  }
  if (stored.subnet !== undefined && stored.gateway !== undefined && stored.bridge === bridge) {
    return { subnet: stored.subnet, gateway: stored.gateway };
  }
  const found = link === undefined ? undefined : addressOf(route, link);
  if (found !== undefined) {
    return { subnet: cidrText(rangeOf(parseIp(found.ip)!, found.prefixLength)), gateway: found.ip };
  }
  const subnet = chooseSubnet(rangesInUse(route), pools);
  return { subnet: cidrText(subnet), gateway: gatewayOf(subnet) };
}

/** Running containers have addresses and routes of the old range, which cannot be changed from outside. */
export function refuseMove(
  stored: NetworkRecord,
  wanted: { bridge: string; subnet?: string; gateway?: string },
  members: number,
): void {
  const moved = stored.bridge !== wanted.bridge || stored.subnet !== wanted.subnet || stored.gateway !== wanted.gateway;
  if (!moved || members === 0) return;
  throw new EngineError(
    'conflict',
    `${members} running containers are on ${stored.bridge} (${stored.subnet}): stop them before the bridge moves to ` +
      `${wanted.bridge} (${wanted.subnet ?? 'no addresses'})`,
  );
}

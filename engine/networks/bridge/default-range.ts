import { isDeepStrictEqual } from 'node:util';

import { listAddresses } from '../../host/network/addresses.ts';
import type { Link } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { EngineError } from '../../lib/errors.ts';
import { ipText, parseIp } from '../../lib/notations/ip-address.ts';
import { cidrText, contains, rangeOf, type Cidr } from '../addresses/cidr.ts';
import { chooseSubnet, parseBip, parseFixedCidrV6 } from '../addresses/subnets.ts';
import type { NetworkRecord } from '../store.ts';
import { addressOf, findBridge, gatewayOf, rangesInUse } from './bridge-link.ts';

type Settings = Readonly<{
  bridge: string;
  bip: string;
  fixedCidrV6: string;
  dataRoot: string;
  pools: readonly Cidr[];
}>;
type Range = Readonly<{ subnet: string; gateway: string }>;
type Ranges = Range & Readonly<{ ipv6?: Range }>;

/** The address ranges of the default bridge. */
export function defaultRanges(settings: Settings, stored: NetworkRecord): Ranges {
  const { bridge, fixedCidrV6, dataRoot } = settings;
  using route = new Netlink();
  const link = findBridge(route, bridge, dataRoot);
  const ipv6 = fixedCidrV6 === '' ? undefined : rangeOfSix(route, link, parseFixedCidrV6(fixedCidrV6));
  return { ...rangeOfFour(route, link, settings, stored), ...(ipv6 !== undefined && { ipv6 }) };
}

/** The setting; the bridge's address is its own if it has one of the range, else the first. */
function rangeOfSix(route: Netlink, link: Link | undefined, range: Cidr): Range {
  const own = link === undefined ? [] : listAddresses(route, 6).filter((address) => address.link === link.index);
  const found = own.find(({ ip }) => contains(range, parseIp(ip)!));
  return { subnet: cidrText(range), gateway: found?.ip ?? gatewayOf(range) };
}

/** The setting, the stored range, the one of an existing bridge, or the first free range. */
function rangeOfFour(route: Netlink, link: Link | undefined, settings: Settings, stored: NetworkRecord): Range {
  const { bridge, bip, pools } = settings;
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

/** Running containers have addresses and routes of the old ranges, which cannot be changed from outside. */
export function refuseMove(stored: NetworkRecord, wanted: { bridge: string } & Partial<Ranges>, members: number): void {
  if (members === 0 || isDeepStrictEqual(placeOf(stored), placeOf(wanted))) return;
  throw new EngineError(
    'conflict',
    `${members} running containers are on ${stored.bridge} (${rangesText(stored)}): stop them before the bridge moves to ` +
      `${wanted.bridge} (${rangesText(wanted)})`,
  );
}

function placeOf({ bridge, subnet, gateway, ipv6 }: Partial<Ranges & { bridge: string }>): unknown[] {
  return [bridge, subnet, gateway, ipv6?.subnet, ipv6?.gateway];
}

function rangesText({ subnet, ipv6 }: Partial<Ranges>): string {
  if (subnet === undefined) return 'no addresses';
  return ipv6 === undefined ? subnet : `${subnet}, ${ipv6.subnet}`;
}

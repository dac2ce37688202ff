import { closeSync, openSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import { withNetns } from '../../host/namespaces.ts';
import { addRoute, type Route } from '../../host/network/addresses.ts';
import { changeLink, findLink, getLink, listLinks, type Link } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { parseCidr, cidrText } from '../addresses/cidr.ts';
import type { WantedPlace } from '../drivers/driver.ts';
import { hasAddress, type Place } from '../endpoints/endpoint.ts';
import { applySysctls } from '../endpoints/interface-options.ts';
import {
  addressing,
  announceAddresses,
  dropAddresses,
  enableIPv6,
  freeInterfaceName,
  needsIPv6,
} from '../endpoints/interfaces.ts';

/** A link whose other end is not up carries nothing, and its container starts all the same. */
const CARRIES_WITHIN_MS = 200;
/** The kernel notes one change of links after the other: beside many others a link carries late what it could carry at once. */
const NOTED_WITHIN_MS = 10_000;
const CHECK_INTERVAL_MS = 5;

/** A static route of a plugin; without `nextHop` straight onto the link. */
export type PluginRoute = Readonly<{ destination: string; nextHop: string | undefined }>;

type Wanted = WantedPlace &
  Readonly<{ netns: number; leadsOut: boolean; prefix: string; routes: readonly PluginRoute[]; plugin: string }>;

/**
 * Moves the link that a plugin has made into a container's namespace, names it there, and gives it its addresses and
 * routes. Returns its hardware address. Throws `failed` where there is no such link.
 */
export function placeLink(place: Place, wanted: Wanted): string {
  const { netns, prefix, plugin } = wanted;
  using machine = new Netlink();
  using inside = withNetns(netns, () => new Netlink());
  const link = findLink(machine, place.link);
  if (link === undefined) {
    throw new EngineError('failed', `plugin "${plugin}" has named the link ${place.link}, which is not there`);
  }
  const name = freeInterfaceName(inside, wanted, prefix);
  machine.apply(changeLink(link.index, { up: false }));
  machine.apply(changeLink(link.index, { netns, name }));
  try {
    const { index } = getLink(inside, name);
    withNetns(netns, () => {
      announceAddresses(name);
      if (needsIPv6(place, wanted)) enableIPv6(name);
    });
    inside.apply(changeLink(index, { up: true, ...(place.macAddress !== '' && { mac: place.macAddress }) }));
    const addresses = hasAddress(place) ? addressing(index, place, wanted) : [];
    inside.apply(...addresses, ...wanted.routes.map((route) => addRoute(kernelRoute(index, route))));
    applySysctls(netns, name, wanted);
    return getLink(inside, index).mac;
  } catch (error) {
    moveBack(inside, name, place.link);
    throw error;
  }
}

/**
 * Tells the neighbours of a link that `placeLink` has placed, as they may know another owner of its address. The kernel
 * sees a little later than the link is up that it carries anything, and that the bridge at its other end is to use it. Only
 * some kinds of links can be told while they are in use.
 */
export async function announceLink(netns: number, mac: string): Promise<void> {
  using inside = withNetns(netns, () => new Netlink());
  using machine = new Netlink();
  const ours = (): Link | undefined => listLinks(inside).find((link) => link.mac === mac);
  const begun = performance.now();
  const isEarly = (link: Link): boolean => {
    const carries = link.isRunning && otherEnd(machine, link)?.isUnusedPort !== true;
    return !carries && performance.now() - begun < (link.hasCarrier ? NOTED_WITHIN_MS : CARRIES_WITHIN_MS);
  };
  let link = ours();
  while (link !== undefined && isEarly(link)) {
    await setTimeout(CHECK_INTERVAL_MS);
    link = ours();
  }
  if (link === undefined) return;
  try {
    inside.apply(changeLink(link.index, { mac }));
  } catch (error) {
    if (!hasCode(error, 'EBUSY') && !hasCode(error, 'EOPNOTSUPP')) throw error;
  }
}

/** The end of a pair that the plugin has kept, if it is on the machine: mostly a port of its bridge. */
function otherEnd(machine: Netlink, { index, kind, other }: Link): Link | undefined {
  if (kind !== 'veth') return undefined;
  return listLinks(machine).find((link) => link.index === other && link.kind === kind && link.other === index);
}

function kernelRoute(link: number, { destination, nextHop }: PluginRoute): Route {
  const range = parseCidr(destination)?.range;
  if (range === undefined) throw new EngineError('failed', `the route to ${destination} leads to no range`);
  const [base = ''] = cidrText(range).split('/');
  return {
    destination: base,
    prefixLength: range.prefixLength,
    ...(nextHop === undefined ? { link } : { gateway: nextHop }),
  };
}

/** Gives a plugin its link back from a namespace that stays, under the name that it had. */
export function returnLink(place: Place, netns: number): void {
  if (place.link === '') return;
  using inside = withNetns(netns, () => new Netlink());
  dropAddresses(inside, place);
  const link = listLinks(inside).find(({ mac }) => mac === place.macAddress);
  if (link !== undefined) moveBack(inside, link.name, place.link);
}

function moveBack(inside: Netlink, name: string, original: string): void {
  const link = findLink(inside, name);
  if (link === undefined) return;
  const machine = openSync('/proc/thread-self/ns/net', 'r');
  try {
    inside.apply(changeLink(link.index, { up: false }));
    inside.apply(changeLink(link.index, { netns: machine, name: original }));
  } finally {
    closeSync(machine);
  }
}

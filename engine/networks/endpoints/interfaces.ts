import { writeFileSync } from 'node:fs';

import {
  addAddress,
  addRoute,
  deleteAddress,
  deleteRoute,
  listAddresses,
  listRoutes,
  type Route,
} from '../../host/network/addresses.ts';
import { listLinks } from '../../host/network/links.ts';
import type { Message, Netlink } from '../../host/network/netlink.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { isSix, type Family } from '../../lib/notations/ip-address.ts';
import type { WantedPlace } from '../drivers/driver.ts';
import { addressesOf, type Place } from './endpoint.ts';
import type { InterfaceOptions } from './interface-options.ts';

/** The client's name for an interface, or the first of `eth0`, `eth1`, … that the socket's namespace does not have. */
export function freeInterfaceName(inside: Netlink, { interfaceName }: InterfaceOptions, prefix = 'eth'): string {
  const names = new Set(listLinks(inside).map(({ name }) => name));
  if (interfaceName !== undefined) {
    if (!names.has(interfaceName)) return interfaceName;
    throw new EngineError('failed', `the container has an interface ${interfaceName} already`);
  }
  for (let number = 0; ; number += 1) if (!names.has(`${prefix}${number}`)) return `${prefix}${number}`;
}

const ANYWHERE: Readonly<Record<Family, string>> = { 4: '0.0.0.0', 6: '::' };

/** Where the default route leads: to a gateway, or onto a link (its index). */
export type RouteTarget = Readonly<{ gateway: string } | { link: number }>;

/** Sets a link's addresses, and, if it leads out, the default routes over the gateways, or over itself. */
export function addressing(
  link: number,
  place: Place,
  { leadsOut, linkLocal = [] }: { leadsOut: boolean; linkLocal?: readonly string[] },
): Message[] {
  const routeOut = ({ gateway }: Addressed): RouteTarget | undefined => {
    if (leadsOut && place.isWayOutItself === true) return { link };
    return leadsOut && gateway !== '' ? { gateway } : undefined;
  };
  const six = place.ipv6 === undefined ? [] : addressAndRoute(link, place.ipv6, 6, routeOut(place.ipv6));
  const more = linkLocal.map((ip) => addAddress({ link, ip, prefixLength: isSix(ip) ? 64 : 16 }));
  const four = place.ipAddress === '' ? [] : addressAndRoute(link, place, 4, routeOut(place));
  return [...four, ...six, ...more];
}

/** Whether an interface needs IPv6. */
export function needsIPv6({ ipv6 }: Pick<Place, 'ipv6'>, { linkLocal = [] }: WantedPlace): boolean {
  return ipv6 !== undefined || linkLocal.some(isSix);
}

type Addressed = Readonly<{ ipAddress: string; prefixLength: number; gateway: string }>;

function addressAndRoute(link: number, address: Addressed, family: Family, to: RouteTarget | undefined): Message[] {
  const { ipAddress: ip, prefixLength } = address;
  return [addAddress({ link, ip, prefixLength }), ...(to === undefined ? [] : [addRoute(defaultRoute(family, to))])];
}

function defaultRoute(family: Family, to: RouteTarget): Route {
  return { destination: ANYWHERE[family], prefixLength: 0, ...to };
}

/** Takes the addresses from their interface, and with them the routes over them: at once, unlike a link's removal. */
export function dropAddresses(inside: Netlink, place: Place): void {
  const mine = addressesOf(place);
  const all = [...listAddresses(inside), ...(place.ipv6 === undefined ? [] : listAddresses(inside, 6))];
  const found = all.filter(({ ip }) => mine.includes(ip));
  if (found.length > 0) inside.apply(...found.map(deleteAddress));
}

/** Sets or removes the default route of a family. */
export function setDefaultRoute(inside: Netlink, family: Family, to: RouteTarget | undefined): void {
  const old = listRoutes(inside, family).filter(({ prefixLength }) => prefixLength === 0);
  if (old.length === 1 && leadsTo(old[0]!, to)) return;
  for (const route of old) dropRoute(inside, route);
  if (to !== undefined) inside.apply(addRoute(defaultRoute(family, to)));
}

/** Without a way out a route of a plugin, which has no gateway, stays. */
function leadsTo({ gateway, link }: Route, to: RouteTarget | undefined): boolean {
  if (to !== undefined && 'gateway' in to) return gateway === to.gateway;
  return gateway === undefined && (to === undefined || link === to.link);
}

/** A missing route is no error: the removal of a link in the background takes its routes along, at any moment. */
function dropRoute(inside: Netlink, route: Route): void {
  try {
    inside.apply(deleteRoute(route));
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

/** Makes an interface announce a change of its hardware address; this thread is in its namespace. */
export function announceAddresses(name: string): void {
  writeFileSync(`/proc/sys/net/ipv4/conf/${name}/arp_notify`, '1');
}

/**
 * Switches IPv6 on for an interface of a container; this thread is in its namespace, where IPv6 is off otherwise.
 *
 * `ndisc_notify`: neighbours are told when the hardware address is set, because another container may have had the same
 * address under another one.
 */
export function enableIPv6(name: string): void {
  for (const link of ['lo', name]) writeFileSync(`/proc/sys/net/ipv6/conf/${link}/disable_ipv6`, '0');
  writeFileSync(`/proc/sys/net/ipv6/conf/${name}/ndisc_notify`, '1');
}

import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { addAddress, deleteAddress, listAddresses, listRoutes, type Address } from '../../host/network/addresses.ts';
import { disableIPv6, ignoreRouters } from '../../host/network/link-settings.ts';
import {
  changeLink,
  createBridge,
  deleteLink,
  findLink,
  getLink,
  listLinks,
  macText,
  type Link,
} from '../../host/network/links.ts';
import type { Netlink } from '../../host/network/netlink.ts';
import { isRootless } from '../../host/rootless.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { isSix, parseIp } from '../../lib/notations/ip-address.ts';
import { addressAt, rangeOf, type Cidr } from '../addresses/cidr.ts';
import { aliasOf, ownerOf } from '../drivers/link-owner.ts';

const DEFAULT_MTU = 1500;

/** The bridge's name as the kernel and nft accept it. */
export function checkBridgeName(name: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/.test(name)) {
    throw new EngineError('invalid', `bridge: ${name} is not a valid link name: 1 to 15 letters, digits, _ . -`);
  }
}

/** The bridge of that name, if it exists and this daemon may use it. */
export function findBridge(route: Netlink, name: string, dataRoot: string, known?: KnownLinks): Link | undefined {
  const link = known === undefined ? findLink(route, name) : known.links.get(name);
  if (link === undefined) return undefined;
  if (link.kind !== 'bridge') throw new EngineError('invalid', `bridge: the link ${name} is not a bridge`);
  const owner = ownerOf(link);
  // A removed data root has no containers, so its bridge is a leftover that can be taken over.
  if (owner !== undefined && owner !== dataRoot && existsSync(join(owner, 'gantry.db'))) {
    throw new EngineError(
      'conflict',
      `bridge: ${name} belongs to the daemon of ${owner}: choose another with --bridge`,
    );
  }
  return link;
}

type BridgeSpec = Readonly<{
  name: string;
  dataRoot: string;
  /** The bridge's own addresses: one of IPv4, and perhaps one of IPv6. */
  addresses: readonly Readonly<{ ip: string; prefixLength: number }>[];
  mtu: number;
}>;

/** The machine's links and addresses, read once for many networks. */
export type KnownLinks = Readonly<{ links: ReadonlyMap<string, Link>; addresses: readonly Address[] }>;

export function knownLinks(route: Netlink): KnownLinks {
  return {
    links: new Map(listLinks(route).map((link) => [link.name, link])),
    addresses: allAddresses(route),
  };
}

/** Creates the bridge, or completes an existing one, and enables forwarding. */
export function ensureBridge(
  route: Netlink,
  spec: BridgeSpec,
  known?: KnownLinks,
): { index: number; isForeign: boolean } {
  const existing = findBridge(route, spec.name, spec.dataRoot, known);
  if (existing === undefined) return { index: makeBridge(route, spec), isForeign: false };
  const ours = ownerOf(existing) !== undefined;
  const alias = aliasOf(spec.dataRoot);
  if (!existing.up || (ours && existing.alias !== alias)) {
    route.apply(changeLink(existing.index, { up: true, ...(ours ? { alias } : {}) }));
  }
  const there = (known?.addresses ?? allAddresses(route)).filter((address) => address.link === existing.index);
  const isOwn = (address: string): boolean => spec.addresses.some(({ ip }) => ip === address);
  // Addresses of an earlier --bip. On a foreign bridge other addresses are left alone.
  const old = ours ? there.filter(({ ip }) => !isOwn(ip) && !isLinkLocal(ip)) : [];
  if (old.length > 0) route.apply(...old.map(deleteAddress));
  if (ours) distrustContainers(spec);
  enableForwarding(spec);
  const missing = spec.addresses.filter(({ ip }) => !there.some((address) => address.ip === ip));
  if (missing.length > 0) route.apply(...missing.map((address) => addAddress({ link: existing.index, ...address })));
  return { index: existing.index, isForeign: !ours };
}

function makeBridge(route: Netlink, spec: BridgeSpec): number {
  const { name, mtu, dataRoot, addresses } = spec;
  // A MAC address of its own; otherwise the bridge uses the lowest of its ports', which changes with every container.
  const mac = macText(Buffer.concat([Buffer.from([0x02, 0x42]), randomBytes(4)]));
  route.apply(createBridge({ name, mac, mtu }));
  const link = getLink(route, name);
  try {
    distrustContainers(spec);
    enableForwarding(spec);
    route.apply(
      changeLink(link.index, { up: true, alias: aliasOf(dataRoot) }),
      ...addresses.map((address) => addAddress({ link: link.index, ...address })),
    );
  } catch (error) {
    route.apply(deleteLink(link.index));
    const six = addresses.find(({ ip }) => isSix(ip));
    if (six === undefined || !hasCode(error, 'EADDRNOTAVAIL')) throw error;
    // Such as one of ff00::/8 or ::1; in dockerd's words.
    const message = `failed to add IPv6 address ${six.ip}/${six.prefixLength} to bridge: cannot assign requested address`;
    throw new EngineError('invalid', message, { cause: error });
  }
  return link.index;
}

/** Containers are no routers of this machine. A bridge of the operator may lead to real ones, and keeps its settings. */
function distrustContainers({ name, addresses }: BridgeSpec): void {
  ignoreRouters(name);
  if (!addresses.some(({ ip }) => isSix(ip))) disableIPv6(name);
}

function enableForwarding({ name, addresses }: BridgeSpec): void {
  writeFileSync(`/proc/sys/net/ipv4/conf/${name}/route_localnet`, '1');
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
  if (!addresses.some(({ ip }) => isSix(ip))) return;
  try {
    enableForwardingOfSix(name);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    throw new EngineError('failed', 'the kernel has no IPv6', { cause: error });
  }
}

const CONF_OF_SIX = '/proc/sys/net/ipv6/conf';
const SHARED_CONF = ['all', 'default'];

/**
 * A machine that forwards ignores routers' advertisements; links that have used them keep using them. Later links, such as
 * those to containers of any engine, have used none.
 */
function enableForwardingOfSix(bridge: string): void {
  writeFileSync(`${CONF_OF_SIX}/${bridge}/disable_ipv6`, '0');
  if (readFileSync(`${CONF_OF_SIX}/all/forwarding`, 'utf8').trim() === '1') return;
  for (const link of readdirSync(CONF_OF_SIX)) {
    const path = `${CONF_OF_SIX}/${link}/accept_ra`;
    if (!SHARED_CONF.includes(link) && readFileSync(path, 'utf8').trim() === '1') writeFileSync(path, '2');
  }
  writeFileSync(`${CONF_OF_SIX}/all/forwarding`, '1');
}

function allAddresses(route: Netlink): Address[] {
  return [...listAddresses(route), ...listAddresses(route, 6)];
}

function isLinkLocal(ip: string): boolean {
  return ip.startsWith('fe80:');
}

/** Whether a bridge of that name exists and was made by this daemon. */
export function isOwnBridge(route: Netlink, name: string, dataRoot: string): boolean {
  const link = findLink(route, name);
  return link !== undefined && ownerOf(link) === ownerOf({ alias: aliasOf(dataRoot) });
}

/** The bridges that this daemon has made, by name. */
export function ownBridges({ links }: KnownLinks, dataRoot: string): string[] {
  const alias = aliasOf(dataRoot);
  return [...links.values()].filter((link) => link.kind === 'bridge' && link.alias === alias).map(({ name }) => name);
}

/** The first IPv4 address of a link, for a foreign bridge. */
export function addressOf(route: Netlink, link: Link): { ip: string; prefixLength: number } | undefined {
  return listAddresses(route).find((address) => address.link === link.index);
}

/** Address ranges in use on this machine: those of its links and of its routes. */
export function rangesInUse(route: Netlink): Cidr[] {
  const addresses = listAddresses(route).map(({ ip, prefixLength }) => ({ ip, prefixLength }));
  const routes = listRoutes(route)
    .filter(({ prefixLength }) => prefixLength > 0)
    .map(({ destination, prefixLength }) => ({ ip: destination, prefixLength }));
  return [...addresses, ...routes].map(({ ip, prefixLength }) => rangeOf(parseIp(ip)!, prefixLength));
}

/** The MTU of the link with the default route, at most Ethernet's: larger packets would be fragmented on the way. */
export function automaticMtu(route: Netlink): number {
  const out = listRoutes(route).find(({ prefixLength }) => prefixLength === 0)?.link;
  if (out === undefined) return DEFAULT_MTU;
  const mtu = listLinks(route).find(({ index }) => index === out)?.mtu ?? DEFAULT_MTU;
  // The way out of an ordinary user ends connections itself: large packets cost it a twentieth.
  return isRootless ? mtu : Math.min(mtu, DEFAULT_MTU);
}

/** The first address of a range, which is the bridge's. */
export function gatewayOf(range: Cidr): string {
  return addressAt(range, 1);
}

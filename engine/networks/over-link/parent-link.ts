import { disableIPv6, dropWithoutRoute, ignoreRouters } from '../../host/network/link-settings.ts';
import {
  changeLink,
  createVeth,
  createVlan,
  deleteLink,
  findLink,
  getLink,
  type Link,
} from '../../host/network/links.ts';
import type { Netlink } from '../../host/network/netlink.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { aliasOf } from '../drivers/link-owner.ts';
import type { LinkKind, LinkSettings } from './kind.ts';

const LOOPBACK = 1;
const LAST_VLAN = 4094;
/** The least of the kernel; below 1280 a link has no IPv6, whatever anybody sets. */
const MTU_WITHOUT_IPV6 = 68;

/**
 * The link beneath a network, by its index. Missing ones are made: of `eth0.50` the VLAN 50 on eth0, of an internal
 * network a link that leads nowhere. Throws `failed` in dockerd's words.
 */
export function ensureParent(
  route: Netlink,
  { name: kind }: LinkKind,
  { parent, isInternal }: LinkSettings,
  dataRoot: string,
): number {
  const there = findLink(route, parent);
  if (there !== undefined) {
    if (there.index === LOOPBACK) {
      throw new EngineError('failed', `loopback interface is not a valid ${kind} parent link`);
    }
    if (there.alias === aliasOf(dataRoot)) {
      distrust(route, there);
      if (!there.up) route.apply(changeLink(there.index, { up: true }));
    }
    return there.index;
  }
  if (isInternal) makeDeadEnd(route, parent);
  else makeVlan(route, kind, parent);
  const made = getLink(route, parent);
  const { index } = made;
  distrust(route, made);
  try {
    route.apply(changeLink(index, { up: true, alias: aliasOf(dataRoot) }));
  } catch (error) {
    route.apply(deleteLink(index));
    throw error;
  }
  return index;
}

/** Whether this daemon has made the link. */
export function isOwnParent(route: Netlink, name: string, dataRoot: string): boolean {
  return findLink(route, name)?.alias === aliasOf(dataRoot);
}

/**
 * A veth pair whose other end is unused. A dummy link would do, but not every kernel has that driver, and veth is
 * needed anyway.
 */
function makeDeadEnd(route: Netlink, name: string): void {
  const other = otherEnd(name);
  route.apply(createVeth({ name, peer: { name: other } }));
  distrust(route, getLink(route, name));
  route.apply(changeLink(getLink(route, other).index, { up: true }));
}

function otherEnd(name: string): string {
  return `${name.slice(0, 13)}-x`;
}

/** Containers over a link are no routers of this machine, and by a link that leads nowhere they do not reach it. */
function distrust(route: Netlink, { name, kind }: Link): void {
  ignoreRouters(name);
  if (kind !== 'veth') return;
  disableIPv6(name);
  const other = otherEnd(name);
  dropWithoutRoute(other);
  route.apply(changeLink(getLink(route, other).index, { mtu: MTU_WITHOUT_IPV6 }));
}

function makeVlan(route: Netlink, kind: LinkKind['name'], name: string): void {
  const { link, id } = vlanOf(name);
  const beneath = findLink(route, link);
  if (beneath === undefined) {
    throw new EngineError(
      'failed',
      `-o parent interface ${kind === 'macvlan' ? 'does ' : ''}was not found on the host: ${link}`,
    );
  }
  if (id < 1 || id > LAST_VLAN) {
    throw new EngineError('failed', `vlan id must be between 1-${LAST_VLAN}, received: ${id}`);
  }
  try {
    route.apply(createVlan({ name, parent: beneath.index, id }));
  } catch (error) {
    if (!hasCode(error, 'EOPNOTSUPP')) throw error;
    throw new EngineError('failed', `failed to create ${name} vlan link: operation not supported`, { cause: error });
  }
}

function vlanOf(name: string): { link: string; id: number } {
  const [link = '', id, ...rest] = name.split('.');
  if (id === undefined || rest.length > 0) {
    throw new EngineError('failed', `invalid subinterface vlan name ${name}, example formatting is eth0.10`);
  }
  if (/^\d{1,9}$/.test(id)) return { link, id: Number(id) };
  throw new EngineError('failed', `unable to parse a valid vlan id from: ${id} (ex. eth0.10 for vlan 10)`);
}

import { addRoute, deleteRoute, deleteAddress, listAddresses, listRoutes } from '../../host/network/addresses.ts';
import { listLinks } from '../../host/network/links.ts';
import type { Netlink } from '../../host/network/netlink.ts';

/** The first of `eth0`, `eth1`, … that the socket's namespace does not have. */
export function freeInterfaceName(inside: Netlink): string {
  const names = new Set(listLinks(inside).map(({ name }) => name));
  for (let number = 0; ; number += 1) if (!names.has(`eth${number}`)) return `eth${number}`;
}

/** Takes an address from its interface, and with it the routes over it: at once, unlike the removal of the link. */
export function dropAddress(inside: Netlink, ip: string): void {
  const found = listAddresses(inside).filter((address) => address.ip === ip);
  if (found.length > 0) inside.apply(...found.map(deleteAddress));
}

/** Leads the default route over a gateway, or over none. */
export function setDefaultRoute(inside: Netlink, gateway: string | undefined): void {
  const old = listRoutes(inside).filter(({ prefixLength }) => prefixLength === 0);
  if (old.length === 1 && old[0]?.gateway === gateway) return;
  if (old.length > 0) inside.apply(...old.map(deleteRoute));
  if (gateway !== undefined) inside.apply(addRoute({ destination: '0.0.0.0', prefixLength: 0, gateway }));
}

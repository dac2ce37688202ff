import { Type, type Static } from 'typebox';

import { PublishedPort } from './ports.ts';

/** The result of a driver's set-up of an endpoint. Empty, and 0, if the driver gives no addresses. */
const Place = Type.Object({
  /** The host's end of the container's link; the link's name in the container where the machine has no end of it. */
  link: Type.String(),
  ipAddress: Type.String(),
  prefixLength: Type.Integer(),
  gateway: Type.String(),
  macAddress: Type.String(),
  /** The link leads out without a gateway, onto its own network. */
  isWayOutItself: Type.Optional(Type.Boolean()),
  /** In networks that have IPv6. */
  ipv6: Type.Optional(
    Type.Immutable(Type.Object({ ipAddress: Type.String(), prefixLength: Type.Integer(), gateway: Type.String() })),
  ),
});
export type Place = Readonly<Static<typeof Place>>;

export const NO_PLACE: Place = { link: '', ipAddress: '', prefixLength: 0, gateway: '', macAddress: '' };

/** A container's endpoint in one network, stored while the container runs. */
export const Endpoint = Type.Object({
  id: Type.String(),
  /** The id of the sandbox that all endpoints of a container share. */
  sandboxId: Type.String(),
  containerId: Type.String(),
  networkId: Type.String(),
  networkName: Type.String(),
  ...Place.properties,
  ports: Type.Immutable(Type.Array(PublishedPort)),
  /** Priority as the way out of the container: the highest wins. Default: 0. */
  gwPriority: Type.Optional(Type.Integer()),
  /** It only leads a container of overlays out: neither clients nor names show it. */
  isWayOut: Type.Optional(Type.Boolean()),
});
export type Endpoint = Readonly<Static<typeof Endpoint>>;

/** The addresses of an endpoint: none, one of IPv4, or one of each family. */
export function addressesOf({ ipAddress, ipv6 }: Place): string[] {
  return [ipAddress, ipv6?.ipAddress ?? ''].filter((address) => address !== '');
}

/** Whether the network gives addresses: a bridge does, `host` and `none` do not. */
export function hasAddress(place: Place): boolean {
  return addressesOf(place).length > 0;
}

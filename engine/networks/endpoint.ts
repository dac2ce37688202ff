import type { PublishedPort } from './ports.ts';

/** What a driver has set up for an endpoint. Empty, and 0, if the driver gives no addresses. */
export type Place = Readonly<{
  /** The host's end of the container's link. */
  link: string;
  ipAddress: string;
  prefixLength: number;
  gateway: string;
  macAddress: string;
}>;

export const NO_PLACE: Place = { link: '', ipAddress: '', prefixLength: 0, gateway: '', macAddress: '' };

/** A container's endpoint in one network, stored while the container runs. */
export type Endpoint = Place &
  Readonly<{
    id: string;
    /** The id of the sandbox that all endpoints of a container share. */
    sandboxId: string;
    containerId: string;
    networkId: string;
    networkName: string;
    ports: readonly PublishedPort[];
  }>;

/** Whether the network gives addresses: a bridge does, `host` and `none` do not. */
export function hasAddress({ ipAddress }: Place): boolean {
  return ipAddress !== '';
}

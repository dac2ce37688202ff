import type { PublishedPort } from './ports.ts';

/** What a driver has made of a container's place in a network. Empty, and 0, where the driver gives no addresses. */
export type Place = Readonly<{
  /** The machine's end of the container's link. */
  link: string;
  ipAddress: string;
  prefixLength: number;
  gateway: string;
  macAddress: string;
}>;

export const NO_PLACE: Place = { link: '', ipAddress: '', prefixLength: 0, gateway: '', macAddress: '' };

/** A container's place in one network, as it is stored while the container runs. */
export type Endpoint = Place &
  Readonly<{
    id: string;
    /** Of the namespace that all endpoints of a container share. */
    sandboxId: string;
    containerId: string;
    networkId: string;
    networkName: string;
    ports: readonly PublishedPort[];
  }>;

/** Whether the network gives addresses, as a bridge does, and the networks `host` and `none` do not. */
export function hasAddress({ ipAddress }: Place): boolean {
  return ipAddress !== '';
}

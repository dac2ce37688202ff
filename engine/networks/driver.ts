import type { Place } from './endpoint.ts';
import type { PublishedPort, WantedPort } from './ports.ts';
import type { NetworkRecord } from './store.ts';

/** What a client requests for an endpoint. */
export type WantedPlace = Readonly<{
  /** Default: chosen by the driver. */
  ip?: string;
  /** Default: made from the address. */
  mac?: string;
}>;

/** `netns` is an open file descriptor that belongs to the caller; undefined: the machine's own namespace. */
export type Joined = Readonly<{ netns: number | undefined; place: Place }>;

/**
 * A kind of network. The order of calls: `prepare`, then `join` and `publish` in one synchronous step; later
 * `unpublish` and `leave`.
 *
 * All but `prepare` are synchronous, so that two starts cannot interleave. `unpublish` and `leave` may be repeated.
 */
export type NetworkDriver = Readonly<{
  /** The driver's name in inspects. */
  name: string;
  /** Restores what other programs changed on the machine, so that packets get through. */
  prepare?(network: NetworkRecord): Promise<void>;
  /** Creates a namespace for a container, with an endpoint in the network. */
  join(network: NetworkRecord, wanted: WantedPlace): Joined;
  leave(network: NetworkRecord, place: Place): void;
  /** Publishes the machine's ports to the endpoint: all or none. A driver without it publishes none. */
  publish?(network: NetworkRecord, place: Place, wanted: readonly WantedPort[]): PublishedPort[];
  unpublish?(network: NetworkRecord, place: Place, ports: readonly PublishedPort[]): void;
  /** Options of the network that only its driver knows. */
  options(network: NetworkRecord): Record<string, string>;
}>;

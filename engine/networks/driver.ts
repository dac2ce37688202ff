import type { Place } from './endpoint.ts';
import type { PublishedPort, WantedPort } from './ports.ts';
import type { NetworkRecord } from './store.ts';

/** What a client asks of its place in a network. */
export type WantedPlace = Readonly<{
  /** Default: chosen by the driver. */
  ip?: string;
  /** Default: made from the address. */
  mac?: string;
}>;

/** `netns` is an open file descriptor that belongs to the caller; undefined: the machine's own namespace. */
export type Joined = Readonly<{ netns: number | undefined; place: Place }>;

/**
 * A kind of network. A life: `prepare`, then in one go `join` and `publish`; later `unpublish` and `leave`.
 *
 * All but `prepare` are synchronous, so that two starts cannot meet half way; `unpublish` and `leave` of what is gone
 * already are no error.
 */
export type NetworkDriver = Readonly<{
  /** As a network shows it. */
  name: string;
  /** Makes sure that packets get through, whatever others did to the machine meanwhile. */
  prepare?(network: NetworkRecord): Promise<void>;
  /** A namespace for a container with a place in the network. */
  join(network: NetworkRecord, wanted: WantedPlace): Joined;
  leave(network: NetworkRecord, place: Place): void;
  /** Takes the machine's ports and directs them to the place: all or none. Without it ports are not published. */
  publish?(network: NetworkRecord, place: Place, wanted: readonly WantedPort[]): PublishedPort[];
  unpublish?(network: NetworkRecord, place: Place, ports: readonly PublishedPort[]): void;
  /** Options of the network that only its driver knows. */
  options(network: NetworkRecord): Record<string, string>;
}>;

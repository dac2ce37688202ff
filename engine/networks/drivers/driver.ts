import type { Place } from '../endpoints/endpoint.ts';
import type { InterfaceOptions } from '../endpoints/interface-options.ts';
import type { PublishedPort, WantedPort } from '../endpoints/ports.ts';
import type { PluginCall } from '../plugins/cleanup-queue.ts';
import type { NetworkRecord } from '../store.ts';

/** At once, or from a driver that has to ask another program. */
export type Eventually<T> = T | Promise<T>;

/** A client's settings for an endpoint. */
export type WantedPlace = InterfaceOptions &
  Readonly<{
    /** Default: chosen by the driver. */
    ip?: string;
    /** Address of IPv6; ignored without IPv6 in the network. */
    ip6?: string;
    /** Default: made from the address. */
    mac?: string;
    /** Link-local addresses. */
    linkLocal?: readonly string[];
  }>;

/** An endpoint that is about to be made: what its container wants of it, and what its driver may have to know. */
export type NewEndpoint = WantedPlace &
  Readonly<{
    id: string;
    /** The ports that the container publishes, wherever that will be. */
    ports: readonly WantedPort[];
    /** Keys such as `80/tcp`. */
    exposed: readonly string[];
    containerName: string;
    /** Whether it is made for a start, not for a container that runs. */
    startsContainer: boolean;
    /** Process whose user namespace owns a new namespace. Default: one of its own, where users are mapped. */
    usersOf?: number | undefined;
  }>;

/** An endpoint that was made. */
export type MadeEndpoint = Place & Readonly<{ id: string }>;

/** `netns` is an open file descriptor that belongs to the caller; undefined: the machine's own namespace. */
export type Joined = Readonly<{ netns: number | undefined; place: Place }>;

/** A container's namespace, in which an endpoint is set up or given up; `netns` stays the caller's. */
export type Within = Readonly<{ netns: number }>;

/**
 * A kind of network. The order of calls for a container: `prepare`, then `join` or `joinInto`, and `publish` in one
 * step; later `unpublish` and `leave`.
 *
 * The engine's own drivers return at once from all but `prepare`, and their callers then wait for nothing: two starts
 * cannot interleave. One that asks a plugin returns promises. `unpublish`, `leave` and `remove` may be repeated.
 */
export type NetworkDriver = Readonly<{
  /** The driver's name in inspects. */
  name: string;
  /**
   * Sets up a new network, and returns its record with the chosen values. A driver without it has only the predefined
   * network. Throws to refuse.
   */
  create?(network: NetworkRecord): Eventually<NetworkRecord>;
  /** Takes a network without endpoints from the machine; what the kernel is slow with goes on afterwards. */
  remove?(network: NetworkRecord): void;
  /** Restores rules that other programs have changed, so that packets pass. */
  prepare?(network: NetworkRecord): Promise<void>;
  /** Creates a namespace for a container, with an endpoint in the network. */
  join(network: NetworkRecord, wanted: NewEndpoint): Eventually<Joined>;
  /** Adds an endpoint to a container's namespace. A driver without it cannot share a namespace with others. */
  joinInto?(network: NetworkRecord, wanted: NewEndpoint, within: Within): Eventually<Place>;
  /** After everything else that makes an endpoint. */
  joined?(network: NetworkRecord, endpoint: MadeEndpoint): Promise<void>;
  /** Frees the addresses. `within`: the namespace, when it stays and the endpoint's link has to go. */
  leave(network: NetworkRecord, left: MadeEndpoint, within?: Within): Eventually<void>;
  /** Publishes the machine's ports to the endpoint: all or none. A driver without it publishes none. */
  publish?(
    network: NetworkRecord,
    at: MadeEndpoint,
    wanted: readonly WantedPort[],
    exposed: readonly string[],
  ): Eventually<PublishedPort[]>;
  unpublish?(network: NetworkRecord, at: MadeEndpoint, ports: readonly PublishedPort[]): Eventually<void>;
  /** Leads published ports to another endpoint of the container, which may be in another network of the driver. */
  movePorts?(from: Place, to: Place, ports: readonly PublishedPort[]): void;
  /** The calls to plugins after the end of a network or an endpoint, instead of `leave` and `remove`. */
  cleanupCalls?: Readonly<{
    network(network: NetworkRecord): PluginCall[];
    /** `isGateway`: it has led its container out. */
    endpoint(network: NetworkRecord, left: MadeEndpoint, isGateway: boolean): PluginCall[];
  }>;
  /** Whether an endpoint leads out of the network, by its gateway. */
  leadsOut?(network: NetworkRecord): boolean;
  /** Options of the network that only its driver knows. */
  options(network: NetworkRecord): Record<string, string>;
}>;

import type { CreateNetworkBody } from '../schema.ts';
import type { NetworkRecord } from '../store.ts';

/** The networks of the cluster, as its managers have them. */
export type ClusterNetworks = Readonly<{
  all: () => readonly NetworkRecord[];
  /** Returns the new id. */
  create: (body: CreateNetworkBody) => Promise<string>;
  remove: (id: string) => Promise<void>;
}>;

/** A daemon's place in a cluster, as far as networks need it. */
export type NetworkCluster = Readonly<{
  /** Undefined outside of a cluster, and on workers. */
  networks: () => Promise<ClusterNetworks | undefined>;
  /** Throws where this daemon is no manager. */
  manager: () => unknown;
}>;

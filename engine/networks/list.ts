import { anyValue, booleanFilter, labelsMatch, textFilter, type Filters } from '../http/values/filters.ts';
import { EngineError } from '../lib/errors.ts';
import { findIn } from './find.ts';
import type { Networks } from './networks.ts';
import type { ClusterNetworks } from './overlay/cluster-networks.ts';
import { scopeOf } from './present.ts';
import type { NetworkRecord } from './store.ts';

export const NETWORK_FILTERS = ['dangling', 'driver', 'id', 'label', 'name', 'scope', 'type'] as const;

/** The networks that match all filters; one of several values of a filter is enough. Throws `invalid`. */
export function listNetworks(
  engine: { networks: Networks },
  filters: Filters,
  cluster: ClusterNetworks | undefined,
): NetworkRecord[] {
  for (const type of filters.get('type') ?? []) {
    if (type !== 'custom' && type !== 'builtin') throw new EngineError('invalid', `invalid filter: 'type'='${type}'`);
  }
  const hasName = textFilter(filters, 'name');
  const hasId = textFilter(filters, 'id');
  const dangling = isDangling(filters);
  return allNetworks(engine.networks, cluster).filter(
    ({ id, name, driver, custom, overlay }) =>
      (dangling === undefined || dangling === (custom !== undefined && engine.networks.membersOf(id).length === 0)) &&
      anyValue(filters, 'driver', (wanted) => driver === wanted) &&
      anyValue(filters, 'scope', (scope) => scope === scopeOf({ overlay })) &&
      anyValue(filters, 'type', (type) => (type === 'builtin') === (custom === undefined)) &&
      hasId(id) &&
      hasName(name) &&
      labelsMatch(filters.get('label'), custom?.labels ?? {}),
  );
}

/** A manager's are those of the whole cluster, and its own; a worker has of the cluster's those of its tasks. */
function allNetworks(networks: Networks, cluster: ClusterNetworks | undefined): NetworkRecord[] {
  const own = networks.list();
  return cluster === undefined ? own : [...cluster.all(), ...own.filter(({ overlay }) => overlay === undefined)];
}

/** Finds a network of this daemon or of the cluster, by its id, its name, or a unique prefix of its id; with a scope one of it. */
export function findNetwork(
  engine: { networks: Networks },
  ref: string,
  cluster: ClusterNetworks | undefined,
  scope = '',
): NetworkRecord {
  const all = allNetworks(engine.networks, cluster);
  if (scope === '') return findIn(all, ref);
  const ofNodes = scope === 'swarm' && cluster !== undefined ? networksOfNodes(all) : [];
  return findIn([...all.filter((network) => scopeOf(network) === scope), ...ofNodes], ref);
}

/** Networks that every node has, and that services may name: docker's command line asks for them by the scope of the cluster. */
function networksOfNodes(networks: readonly NetworkRecord[]): NetworkRecord[] {
  const own = networks.filter(({ name, overlay }) => overlay === undefined && ['host', 'bridge'].includes(name));
  return own.map((network) => ({ ...network, id: network.name }));
}

function isDangling(filters: Filters): boolean | undefined {
  if ((filters.get('dangling')?.size ?? 0) > 1) {
    throw new EngineError('invalid', 'got more than one value for filter key "dangling"');
  }
  return booleanFilter(filters, 'dangling');
}

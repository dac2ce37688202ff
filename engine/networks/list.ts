import { labelsMatch, type Filters } from '../http/filters.ts';
import { EngineError } from '../lib/errors.ts';
import type { Networks } from './networks.ts';
import type { NetworkRecord } from './store.ts';

export const NETWORK_FILTERS = ['driver', 'id', 'label', 'name', 'type'] as const;

/** The networks that satisfy all filters; of several values of one filter one is enough. */
export function listNetworks(engine: { networks: Networks }, filters: Filters): NetworkRecord[] {
  const types = filters.get('type');
  for (const type of types ?? []) {
    if (type !== 'custom' && type !== 'builtin') throw new EngineError('invalid', `invalid filter: 'type'='${type}'`);
  }
  return engine.networks
    .list()
    .filter(
      ({ id, name, driver }) =>
        some(filters.get('driver'), (wanted) => driver === wanted) &&
        some(filters.get('id'), (part) => id.includes(part)) &&
        some(filters.get('name'), (part) => name.includes(part)) &&
        some(types, (type) => type === 'builtin') &&
        labelsMatch(filters.get('label'), {}),
    );
}

function some(wanted: ReadonlySet<string> | undefined, matches: (value: string) => boolean): boolean {
  return wanted === undefined || wanted.size === 0 || [...wanted].some(matches);
}

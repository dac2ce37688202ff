import { anyValue, booleanFilter, labelsMatch, textFilter, type Filters } from '../http/values/filters.ts';
import { EngineError } from '../lib/errors.ts';
import type { Networks } from './networks.ts';
import type { NetworkRecord } from './store.ts';

export const NETWORK_FILTERS = ['dangling', 'driver', 'id', 'label', 'name', 'scope', 'type'] as const;

/** The networks that match all filters; one of several values of a filter is enough. Throws `invalid`. */
export function listNetworks(engine: { networks: Networks }, filters: Filters): NetworkRecord[] {
  for (const type of filters.get('type') ?? []) {
    if (type !== 'custom' && type !== 'builtin') throw new EngineError('invalid', `invalid filter: 'type'='${type}'`);
  }
  const hasName = textFilter(filters, 'name');
  const hasId = textFilter(filters, 'id');
  const dangling = isDangling(filters);
  return engine.networks
    .list()
    .filter(
      ({ id, name, driver, custom }) =>
        (dangling === undefined || dangling === (custom !== undefined && engine.networks.membersOf(id).length === 0)) &&
        anyValue(filters, 'driver', (wanted) => driver === wanted) &&
        anyValue(filters, 'scope', (scope) => scope === 'local') &&
        anyValue(filters, 'type', (type) => (type === 'builtin') === (custom === undefined)) &&
        hasId(id) &&
        hasName(name) &&
        labelsMatch(filters.get('label'), custom?.labels ?? {}),
    );
}

function isDangling(filters: Filters): boolean | undefined {
  if ((filters.get('dangling')?.size ?? 0) > 1) {
    throw new EngineError('invalid', 'got more than one value for filter key "dangling"');
  }
  return booleanFilter(filters, 'dangling');
}

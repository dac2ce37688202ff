import type { Filters } from '../../http/values/filters.ts';
import { anyValue, labelsMatch } from '../../http/values/filters.ts';
import { refuseIf } from '../../lib/errors.ts';
import type { Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';

export const NODE_FILTERS = ['id', 'label', 'membership', 'name', 'node.label', 'role'];

/** The nodes that pass all filters; names and ids match by prefix, as with dockerd. `label`: of engines. */
export function listNodes(view: View, filters: Filters): Stored<'node'>[] {
  for (const role of filters.get('role') ?? [])
    refuseIf(role !== 'worker' && role !== 'manager', `Invalid role filter: '${role}'`);
  for (const value of filters.get('membership') ?? []) {
    refuseIf(value !== 'accepted' && value !== 'pending', `Invalid membership filter: '${value}'`);
  }
  return [...view.all('node')].filter(
    ({ id, role, spec, description }) =>
      anyValue(filters, 'id', (value) => id.startsWith(value)) &&
      anyValue(filters, 'name', (value) => description?.hostname.startsWith(value) === true) &&
      anyValue(filters, 'role', (value) => role === value) &&
      anyValue(filters, 'membership', (value) => value === 'accepted') &&
      labelsMatch(filters.get('label'), description?.engine.labels ?? {}) &&
      labelsMatch(filters.get('node.label'), spec.labels),
  );
}

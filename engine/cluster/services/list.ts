import { anyValue, labelsMatch, type Filters } from '../../http/values/filters.ts';
import type { Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';

export const SERVICE_FILTERS = ['id', 'label', 'mode', 'name', 'runtime'];

/** The services that pass all filters, by name; names and ids match by prefix, as with dockerd. */
export function listServices(view: View, filters: Filters): Stored<'service'>[] {
  return [...view.all('service')]
    .filter(
      ({ id, spec }) =>
        anyValue(filters, 'id', (value) => id.startsWith(value)) &&
        anyValue(filters, 'name', (value) => spec.name.startsWith(value)) &&
        anyValue(filters, 'runtime', (value) => value === 'container') &&
        anyValue(filters, 'mode', (value) => spec.mode.kind === value) &&
        labelsMatch(filters.get('label'), spec.labels),
    )
    .toSorted((a, b) => (a.spec.name < b.spec.name ? -1 : 1));
}

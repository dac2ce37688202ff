import { anyValue, labelsMatch, type Filters } from '../../http/values/filters.ts';
import type { Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';
import type { SecretKind } from './kinds.ts';

/** The secrets or configs that pass all filters, by name. `names` matches whole names, `name` and `id` prefixes. */
export function listSecrets(view: View, kind: SecretKind, filters: Filters): Stored<SecretKind>[] {
  return [...view.all(kind)]
    .filter(
      ({ id, name, labels }) =>
        anyValue(filters, 'id', (value) => id.startsWith(value)) &&
        anyValue(filters, 'name', (value) => name.startsWith(value)) &&
        anyValue(filters, 'names', (value) => name === value) &&
        labelsMatch(filters.get('label'), labels),
    )
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

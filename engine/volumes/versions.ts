import { booleanFilter, type Filters } from '../http/values/filters.ts';
import { isBelow, type ApiVersion } from '../http/versions/api-version.ts';
import type { Steps } from '../http/versions/steps.ts';
import { refuseIf } from '../lib/errors.ts';
import { ANONYMOUS_LABEL } from './create.ts';
import type { VolumeList, VolumeWire } from './schema.ts';

export const volumeSteps: Steps<unknown, VolumeWire> = [{ below: '1.42', response: withoutAnonymousLabel }];

export const volumeListSteps: Steps<unknown, VolumeList> = [
  { below: '1.42', response: ({ Volumes, ...rest }) => ({ ...rest, Volumes: Volumes.map(withoutAnonymousLabel) }) },
];

/** Whether a prune takes volumes with a name too: for older clients always. Throws `invalid` for several values. */
export function prunesNamed(filters: Filters, version: ApiVersion): boolean {
  const values = new Set([...(filters.get('all') ?? []), ...(isBelow(version, '1.42') ? ['true'] : [])]);
  refuseIf(values.size > 1, `invalid filter 'all=[${[...values].join(' ')}]': only one value is expected`);
  return booleanFilter(new Map([['all', values]]), 'all') ?? false;
}

/** Older daemons have no such label. */
function withoutAnonymousLabel(volume: VolumeWire): VolumeWire {
  const rest = Object.entries(volume.Labels ?? {}).filter(([name]) => name !== ANONYMOUS_LABEL);
  return { ...volume, Labels: rest.length === 0 ? null : Object.fromEntries(rest) };
}

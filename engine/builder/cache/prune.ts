import type { Engine } from '../../engine.ts';
import { anyValue, booleanFilter, parseFilters } from '../../http/values/filters.ts';
import { parseTime } from '../../http/values/times.ts';
import type { RunCache } from './run-caches.ts';

const FILTERS = ['until', 'unused-for', 'id', 'type', 'inuse', 'shared', 'private'];
const TYPE = 'exec.cachemount';

/** Removes folders of `RUN --mount=type=cache`. Cached steps are images without a name: `POST /images/prune` has them. */
export async function pruneBuildCaches(
  engine: Pick<Engine, 'events' | 'runCaches'>,
  { keepBytes, matches }: { keepBytes: number; matches: (cache: RunCache) => boolean },
): Promise<{ ids: string[]; bytes: number }> {
  const pruned = await engine.runCaches.prune(keepBytes, matches);
  engine.events.emit('builder', 'prune', '', { reclaimed: String(pruned.bytes) });
  return pruned;
}

/** Reads the `filters` of `POST /build/prune`. Throws `invalid`. */
export function cacheFilter(text: string | undefined, now: Temporal.Instant): (cache: RunCache) => boolean {
  const filters = parseFilters(text, FILTERS);
  const limits = [...(filters.get('until') ?? []), ...(filters.get('unused-for') ?? [])].map((each) =>
    parseTime('until', each, now),
  );
  const [inUse, shared, own] = ['inuse', 'shared', 'private'].map((key) => booleanFilter(filters, key));
  const isKind = anyValue(filters, 'type', (type) => type === TYPE) && shared !== true && own !== false;
  return ({ id, usedAt }) =>
    isKind &&
    inUse !== true &&
    anyValue(filters, 'id', (wanted) => id.startsWith(wanted)) &&
    limits.every((limit) => Temporal.Instant.compare(usedAt, limit) <= 0);
}

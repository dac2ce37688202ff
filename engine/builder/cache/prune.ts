import type { Engine } from '../../engine.ts';
import { filesystemOf } from '../../host/files/statfs.ts';
import { anyValue, booleanFilter, parseFilters } from '../../http/values/filters.ts';
import { parseTime } from '../../http/values/times.ts';
import type { RunCache } from './run-caches.ts';

export type CacheLimits = Readonly<{ maxUsedBytes: number; minFreeBytes: number; reservedBytes: number }>;

const FILTERS = ['until', 'unused-for', 'id', 'type', 'inuse', 'shared', 'private'];
const TYPE = 'exec.cachemount';

/** Removes folders of `RUN --mount=type=cache`. Cached steps are images without a name: `POST /images/prune` has them. */
export async function pruneBuildCaches(
  engine: Pick<Engine, 'config' | 'events' | 'runCaches'>,
  { limits, matches }: { limits: CacheLimits; matches: (cache: RunCache) => boolean },
): Promise<{ ids: string[]; bytes: number }> {
  const { freeBytes } = filesystemOf(engine.config.dataRoot);
  const pruned = await engine.runCaches.prune((usedBytes) => keptBytes(limits, { usedBytes, freeBytes }), matches);
  engine.events.emit('builder', 'prune', '', { reclaimed: String(pruned.bytes) });
  return pruned;
}

/** The bytes of caches that may stay, as BuildKit computes them; without limits none. */
export function keptBytes(
  { maxUsedBytes, minFreeBytes, reservedBytes }: CacheLimits,
  { usedBytes, freeBytes }: Readonly<{ usedBytes: number; freeBytes: number }>,
): number {
  if (maxUsedBytes === 0 && minFreeBytes === 0) return reservedBytes;
  const allowed = maxUsedBytes === 0 ? usedBytes : maxUsedBytes;
  const missing = Math.max(0, minFreeBytes - freeBytes);
  return Math.max(missing > 0 ? Math.min(allowed, usedBytes - missing) : allowed, reservedBytes);
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

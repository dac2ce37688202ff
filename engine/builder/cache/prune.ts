import type { Engine } from '../../engine.ts';
import { filesystemOf } from '../../host/files/statfs.ts';
import { anyValue, booleanFilter, parseFilters } from '../../http/values/filters.ts';
import { parseTime } from '../../http/values/times.ts';
import type { ListedContext } from '../context/kept-contexts.ts';

export type CacheLimits = Readonly<{ maxUsedBytes: number; minFreeBytes: number; reservedBytes: number }>;

const FILTERS = ['until', 'unused-for', 'id', 'type', 'inuse', 'shared', 'private'];

/** A folder of `RUN --mount=type=cache`, or a context that is kept for its client's next build. */
export type BuildCache = Readonly<{
  id: string;
  type: 'exec.cachemount' | 'source.local';
  description: string;
  bytes: number;
  createdAt: Temporal.Instant;
  usedAt: Temporal.Instant;
  isUsed: boolean;
}>;

/** The folders of all kinds, measured now. */
export async function listBuildCaches({
  runCaches,
  keptContexts,
}: Pick<Engine, 'runCaches' | 'keptContexts'>): Promise<BuildCache[]> {
  const folders = await runCaches.list();
  return [
    ...folders.map((each) => ({ ...each, type: 'exec.cachemount', description: 'RUN --mount=type=cache' }) as const),
    ...keptContexts.list().map((each) => asCache(each)),
  ];
}

/**
 * Removes contexts and folders of `RUN --mount=type=cache`. Cached steps are images without a name: `POST /images/prune` has
 * them.
 */
export async function pruneBuildCaches(
  engine: Pick<Engine, 'config' | 'events' | 'keptContexts' | 'runCaches'>,
  { limits, matches }: { limits: CacheLimits; matches: (cache: BuildCache) => boolean },
): Promise<{ ids: string[]; bytes: number }> {
  const { freeBytes } = filesystemOf(engine.config.dataRoot);
  const all = await listBuildCaches(engine);
  let usedBytes = all.reduce((sum, { bytes }) => sum + bytes, 0);
  const limit = keptBytes(limits, { usedBytes, freeBytes });
  const contexts = engine.keptContexts.prune(usedBytes - limit, (each) => matches(asCache(each)));
  usedBytes -= contexts.bytes;
  const folders = await engine.runCaches.prune(
    (bytes) => limit - (usedBytes - bytes),
    (each) => matches({ ...each, type: 'exec.cachemount', description: '' }),
  );
  const bytes = contexts.bytes + folders.bytes;
  engine.events.emit('builder', 'prune', '', { reclaimed: String(bytes) });
  return { ids: [...contexts.ids, ...folders.ids], bytes };
}

function asCache(context: ListedContext): BuildCache {
  return { ...context, type: 'source.local', description: 'local source for context', isUsed: false };
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
export function cacheFilter(text: string | undefined, now: Temporal.Instant): (cache: BuildCache) => boolean {
  const filters = parseFilters(text, FILTERS);
  const limits = [...(filters.get('until') ?? []), ...(filters.get('unused-for') ?? [])].map((each) =>
    parseTime('until', each, now),
  );
  const [inUse, shared, own] = ['inuse', 'shared', 'private'].map((key) => booleanFilter(filters, key));
  const isKind = shared !== true && own !== false;
  return ({ id, type, usedAt }) =>
    isKind &&
    anyValue(filters, 'type', (wanted) => wanted === type) &&
    inUse !== true &&
    anyValue(filters, 'id', (wanted) => id.startsWith(wanted)) &&
    limits.every((limit) => Temporal.Instant.compare(usedAt, limit) <= 0);
}

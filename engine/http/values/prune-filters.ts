import { Type } from 'typebox';

import { EngineError } from '../../lib/errors.ts';
import { labelsMatch, parseFilters, type Filters } from './filters.ts';
import { parseTime } from './times.ts';

export const PruneQuery = Type.Object({
  filters: Type.Optional(Type.String({ description: 'JSON map: label, label!, until, and more of some kinds' })),
});
/** Refusal of a second prune of a kind at the same time, in dockerd's words. */
export const IS_PRUNING = 'a prune operation is already running';

type Labelled = Readonly<{ labels: Readonly<Record<string, string>>; createdAt: Temporal.Instant | undefined }>;

/** The objects that a prune may remove. */
export type PruneFilters = Readonly<{ filters: Filters; matches: (candidate: Labelled) => boolean }>;

/**
 * Reads the `filters` of a prune: `label`, `label!`, and those of `more`, of which `until` is read here. Labels that
 * have all values of `label!` are kept, as in dockerd. Throws `invalid`.
 */
export function parsePruneFilters(
  text: string | undefined,
  more: readonly string[],
  now: Temporal.Instant,
): PruneFilters {
  const filters = parseFilters(text, ['label', 'label!', ...more]);
  const [until, ...others] = filters.get('until') ?? [];
  if (others.length > 0) throw new EngineError('invalid', 'more than one until filter specified');
  const limit = until === undefined ? undefined : parseTime('until', until, now);
  const unwanted = filters.get('label!') ?? new Set();
  return {
    filters,
    matches: ({ labels, createdAt }) =>
      labelsMatch(filters.get('label'), labels) &&
      (unwanted.size === 0 || !labelsMatch(unwanted, labels)) &&
      (limit === undefined || createdAt === undefined || Temporal.Instant.compare(createdAt, limit) <= 0),
  };
}

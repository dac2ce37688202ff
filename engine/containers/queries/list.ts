import { parseFilters } from '../../http/values/filters.ts';
import { filterInSlices } from '../../lib/concurrency/slices.ts';
import { linkNames } from '../links/links.ts';
import { presentSummary, wireStatus } from '../present.ts';
import type { ListQuery, Summary } from '../schema.ts';
import type { ContainerStore } from '../store.ts';
import { aroundOf, type InspectNeeds } from './inspect.ts';
import { CONTAINER_FILTERS, containerFilter } from './list-filters.ts';

/** Without `all`. */
const LISTED: ReadonlySet<string> = new Set(['running', 'paused', 'restarting']);

/** Newest first. Specification, endpoint 1. Throws `invalid` for bad filters. */
export async function listContainers(engine: InspectNeeds, query: ListQuery): Promise<Summary[]> {
  const filters = parseFilters(query.filters, CONTAINER_FILTERS);
  const limit = query.limit ?? 0;
  const matches = containerFilter(engine, filters, query);
  // A filter on the state, or a limit, includes stopped containers.
  const all = query.all === true || limit > 0 || filters.has('status') || Boolean(query.since || query.before);
  const matching = await filterInSlices(
    engine.containers.all().toReversed(),
    (container) => (all || LISTED.has(wireStatus(container.state))) && matches(container),
  );
  const found = matching.filter(({ id }) => engine.containers.get(id) !== undefined); // others were removed meanwhile
  const chosen = limit > 0 ? found.slice(0, limit) : found;
  const names = linkNames(engine.containers);
  const shown = chosen.map((container) =>
    presentSummary(container, aroundOf(engine, container, false, names.get(container.id))),
  );
  return query.size === true ? await withSizes(engine, shown) : shown;
}

/** One after the other, because each may need descriptors and a child process. */
async function withSizes(engine: InspectNeeds, summaries: readonly Summary[]): Promise<Summary[]> {
  const sized: Summary[] = [];
  for (const summary of summaries) {
    if (engine.containers.get(summary.Id) === undefined) continue; // removed meanwhile
    const { writableBytes, rootBytes } = await engine.layers.size(summary.Id);
    sized.push({ ...summary, SizeRw: writableBytes, SizeRootFs: rootBytes });
  }
  return sized;
}

/** The containers that mount a volume, for the volumes domain; one that is being removed does not count. */
export function volumeUsers(containers: ContainerStore, volume: string): string[] {
  return containers
    .all()
    .filter(
      ({ mounts, state }) =>
        state.status !== 'removing' && mounts.some(({ type, name }) => type === 'volume' && name === volume),
    )
    .map(({ id }) => id);
}

import type { Engine } from '../../engine.ts';
import type { PruneFilters } from '../../http/values/prune-filters.ts';
import { EngineError } from '../../lib/errors.ts';
import { isOver } from '../state.ts';
import { removeContainer, type RemoveNeeds } from './remove.ts';

type Needs = RemoveNeeds & Pick<Engine, 'containers' | 'events' | 'layers'>;

type PrunedContainers = { ids: string[]; bytes: number };

/** Removes containers that do not run; their anonymous volumes stay. Stops early when the client goes. */
export async function pruneContainers(
  engine: Needs,
  { matches }: PruneFilters,
  signal: AbortSignal,
): Promise<PrunedContainers> {
  const pruned: PrunedContainers = { ids: [], bytes: 0 };
  for (const { id, state, config, createdAt } of engine.containers.all()) {
    if (signal.aborted) break;
    if (!isOver(state) || !matches({ labels: config.Labels, createdAt })) continue;
    const bytes = await removed(engine, id);
    if (bytes === undefined) continue;
    pruned.ids.push(id);
    pruned.bytes += bytes;
  }
  engine.events.emit('container', 'prune', '', { reclaimed: String(pruned.bytes) });
  return pruned;
}

/** The bytes of its files; undefined if a client was faster, with a start or a removal. */
async function removed(engine: Needs, id: string): Promise<number | undefined> {
  try {
    if (engine.containers.get(id) === undefined) return undefined;
    const { writableBytes } = await engine.layers.size(id);
    await removeContainer(engine, id);
    return Math.max(0, writableBytes);
  } catch (error) {
    if (error instanceof EngineError && (error.kind === 'notFound' || error.kind === 'conflict')) return undefined;
    throw error;
  }
}

import type { PruneFilters } from '../http/values/prune-filters.ts';
import { EngineError } from '../lib/errors.ts';
import { ANONYMOUS_LABEL } from './create.ts';
import { removeVolume, type RemoveVolumeNeeds } from './remove.ts';
import { isPlainLocal, volumeBytes } from './size.ts';

export type PrunedVolumes = { names: string[]; bytes: number };

/**
 * Removes local volumes that no container has: anonymous ones, with `takesNamed` all. Stops early when the client goes.
 */
export async function pruneVolumes(
  engine: RemoveVolumeNeeds,
  { matches, takesNamed }: Pick<PruneFilters, 'matches'> & { takesNamed: boolean },
  signal: AbortSignal,
): Promise<PrunedVolumes> {
  const pruned: PrunedVolumes = { names: [], bytes: 0 };
  for (const volume of engine.volumes.all()) {
    if (signal.aborted) break;
    const { name, labels, createdAt } = volume;
    const isUsed = engine.volumeUsage.usersOf(name).length > 0 || engine.volumeUsage.isIncomplete();
    if (isUsed || !isPlainLocal(volume) || !matches({ labels, createdAt })) continue;
    if (!takesNamed && !Object.hasOwn(labels, ANONYMOUS_LABEL)) continue;
    const bytes = await volumeBytes(engine, volume);
    if (!(await isRemoved(engine, name))) continue;
    pruned.names.push(name);
    pruned.bytes += Math.max(0, bytes);
  }
  engine.events.emit('volume', 'prune', '', { reclaimed: String(pruned.bytes) });
  return pruned;
}

/** False if a client was faster, with a container or a removal. */
async function isRemoved(engine: RemoveVolumeNeeds, name: string): Promise<boolean> {
  try {
    await removeVolume(engine, name);
    return true;
  } catch (error) {
    if (error instanceof EngineError && (error.kind === 'notFound' || error.kind === 'conflict')) return false;
    throw error;
  }
}

import type { PruneFilters } from '../http/values/prune-filters.ts';
import { EngineError } from '../lib/errors.ts';
import { removeNetwork } from './create.ts';
import { listNetworks } from './list.ts';

type Needs = Parameters<typeof removeNetwork>[0];

/** Removes networks that no container is in and no service uses; those of the cluster on a manager. */
export async function pruneNetworks(engine: Needs, { matches }: PruneFilters, signal: AbortSignal): Promise<string[]> {
  const names: string[] = [];
  const ofCluster = await engine.cluster.networks();
  for (const { id, name, createdAt, custom, overlay } of listNetworks(engine, new Map(), ofCluster)) {
    if (signal.aborted) break;
    const isOthers = overlay !== undefined && (overlay.ingress || ofCluster === undefined);
    if (custom === undefined || custom.configOnly === true || isOthers || engine.networks.membersOf(id).length > 0)
      continue;
    if (!matches({ labels: custom.labels, createdAt })) continue;
    if (await isRemoved(engine, id)) names.push(name);
  }
  engine.events.emit('network', 'prune', '', { reclaimed: '0' });
  return names;
}

/** False if it is used, or a client was faster. */
async function isRemoved(engine: Needs, id: string): Promise<boolean> {
  try {
    await removeNetwork(engine, id);
    return true;
  } catch (error) {
    if (error instanceof EngineError && ['forbidden', 'invalid', 'notFound'].includes(error.kind)) return false;
    throw error;
  }
}

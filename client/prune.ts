import type { Connection, Query } from './connection.ts';

/** The first version of the API that has these endpoints, and the filters of a prune. */
const VERSION = '1.42';

type Reclaimed = { SpaceReclaimed: number };

/** POST /containers/prune. */
export async function pruneContainers(
  engine: Connection,
  query: Query = {},
): Promise<Reclaimed & { ContainersDeleted: string[] | null }> {
  return await engine.call('POST', '/containers/prune', { query, version: VERSION });
}

/** POST /images/prune. */
export async function pruneImages(
  engine: Connection,
  query: Query = {},
): Promise<Reclaimed & { ImagesDeleted: { Untagged?: string; Deleted?: string }[] | null }> {
  return await engine.call('POST', '/images/prune', { query, version: VERSION });
}

/** POST /volumes/prune. */
export async function pruneVolumes(
  engine: Connection,
  query: Query = {},
): Promise<Reclaimed & { VolumesDeleted: string[] | null }> {
  return await engine.call('POST', '/volumes/prune', { query, version: VERSION });
}

/** POST /networks/prune. */
export async function pruneNetworks(
  engine: Connection,
  query: Query = {},
): Promise<{ NetworksDeleted: string[] | null }> {
  return await engine.call('POST', '/networks/prune', { query, version: VERSION });
}

/** POST /build/prune. */
export async function pruneBuildCaches(
  engine: Connection,
  query: Query = {},
): Promise<Reclaimed & { CachesDeleted: string[] | null }> {
  return await engine.call('POST', '/build/prune', { query, version: VERSION });
}

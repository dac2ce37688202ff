import { listBuildCaches, pruneBuildCaches, type BuildCache } from '../../builder/cache/prune.ts';
import type { Engine } from '../../engine.ts';
import { timeOf } from '../messages/common.ts';
import * as control from '../messages/control.ts';
import type { Sent } from '../wire/message.ts';
import { streaming, unary, type Methods } from '../wire/service.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';

const SERVICE = '/moby.buildkit.v1.Control/';

/** The methods of `docker buildx du` and `prune`: the folders of `RUN --mount=type=cache`, and contexts for later builds. */
export function cacheMethods(engine: Engine): Methods {
  return new Map([
    [
      `${SERVICE}DiskUsage`,
      unary(control.DiskUsageRequest, control.DiskUsageResponse, async ({ filter }) => {
        refuseFilters(filter);
        return { records: (await listBuildCaches(engine)).map(recordOf) };
      }),
    ],
    [
      `${SERVICE}Prune`,
      streaming(control.PruneRequest, control.PruneResponse, async function* prune(request) {
        const { filter, keepDuration, reservedSpace, maxUsedSpace, minFreeSpace } = request;
        refuseFilters(filter);
        const known = new Map((await listBuildCaches(engine)).map((cache) => [cache.id, cache]));
        const usedBefore = engine.clock.now().subtract({ nanoseconds: keepDuration });
        const limits = { maxUsedBytes: maxUsedSpace, minFreeBytes: minFreeSpace, reservedBytes: reservedSpace };
        const { ids } = await pruneBuildCaches(engine, {
          limits,
          matches: ({ usedAt }) => Temporal.Instant.compare(usedAt, usedBefore) <= 0,
        });
        for (const id of ids) {
          const cache = known.get(id);
          if (cache !== undefined) yield recordOf(cache);
        }
      }),
    ],
  ]);
}

function recordOf({
  id,
  type,
  description,
  bytes,
  createdAt,
  usedAt,
  isUsed,
}: BuildCache): Sent<typeof control.PruneResponse> {
  return {
    id,
    isMutable: true,
    isInUse: isUsed,
    size: bytes,
    createdAt: timeOf(createdAt),
    lastUsedAt: timeOf(usedAt),
    description,
    type,
  };
}

function refuseFilters(filters: readonly string[]): void {
  const first = filters.find((filter) => filter !== '');
  if (first === undefined) return;
  throw new GrpcError(StatusCode.UNIMPLEMENTED, `the filter ${JSON.stringify(first)} is not implemented yet`);
}

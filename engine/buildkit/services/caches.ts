import { pruneBuildCaches } from '../../builder/cache/prune.ts';
import type { RunCache } from '../../builder/cache/run-caches.ts';
import type { Engine } from '../../engine.ts';
import { timeOf } from '../messages/common.ts';
import * as control from '../messages/control.ts';
import type { Sent } from '../wire/message.ts';
import { streaming, unary, type Methods } from '../wire/service.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';

const SERVICE = '/moby.buildkit.v1.Control/';

/** The methods of `docker buildx du` and `prune`: the folders of `RUN --mount=type=cache`. */
export function cacheMethods(engine: Engine): Methods {
  return new Map([
    [
      `${SERVICE}DiskUsage`,
      unary(control.DiskUsageRequest, control.DiskUsageResponse, async ({ filter }) => {
        refuseFilters(filter);
        return { records: (await engine.runCaches.list()).map(recordOf) };
      }),
    ],
    [
      `${SERVICE}Prune`,
      streaming(control.PruneRequest, control.PruneResponse, async function* prune(request) {
        const { filter, keepDuration, reservedSpace, maxUsedSpace, minFreeSpace } = request;
        refuseFilters(filter);
        const known = new Map((await engine.runCaches.list()).map((cache) => [cache.id, cache]));
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

function recordOf({ id, bytes, createdAt, usedAt, isUsed }: RunCache): Sent<typeof control.PruneResponse> {
  return {
    id,
    isMutable: true,
    isInUse: isUsed,
    size: bytes,
    createdAt: timeOf(createdAt),
    lastUsedAt: timeOf(usedAt),
    description: 'RUN --mount=type=cache',
    type: 'exec.cachemount',
  };
}

function refuseFilters(filters: readonly string[]): void {
  const first = filters.find((filter) => filter !== '');
  if (first === undefined) return;
  throw new GrpcError(StatusCode.UNIMPLEMENTED, `the filter ${JSON.stringify(first)} is not implemented yet`);
}

import type { Engine } from '../engine.ts';
import { logUnexpected } from '../http/errors.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { openStream } from '../http/streams/stream.ts';
import { IS_PRUNING } from '../http/values/prune-filters.ts';
import { isBelow } from '../http/versions/api-version.ts';
import { OneAtATime } from '../lib/concurrency/one-at-a-time.ts';
import { EngineError, refuseIf } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import { BuildAnswer } from './build-answer.ts';
import { buildFromRequest } from './build-request.ts';
import { cacheFilter, pruneBuildCaches } from './cache/prune.ts';
import { buildOptions } from './options.ts';
import { RunningBuilds } from './running-builds.ts';
import { BuildQuery, CancelBuildQuery, PruneCachesQuery, PrunedCaches } from './schema.ts';
import { StepFailed } from './steps/step-failed.ts';

export const buildRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    const builds = new RunningBuilds();
    http.post('/build', {
      schema: { querystring: BuildQuery },
      handler: async (request, reply) => {
        const options = buildOptions(request.query, request.headers);
        using running = builds.add(request.query.buildid ?? '');
        const gone = clientGone(reply.raw);
        const signal = AbortSignal.any([gone, running.signal]);
        const answer = new BuildAnswer(() => openStream(reply), options.isQuiet);
        try {
          const body = request.raw;
          const wantsAux = !isBelow(request.apiVersion, '1.30');
          const image = await buildFromRequest(engine, { options, body, client: answer, signal, wantsAux });
          if (options.isQuiet) answer.send({ stream: `${image.id}\n` });
        } catch (error) {
          if (gone.aborted) return;
          const failure = running.signal.aborted ? canceled(error) : error;
          await answer.sendKept();
          if (!answer.hasBegun) throw failure;
          logUnexpected(failure, request);
          const message = messageOf(failure);
          const code = failure instanceof StepFailed ? { code: failure.exitCode } : {};
          answer.send({ errorDetail: { ...code, message }, error: message });
        }
        answer.end();
      },
    });

    const pruning = new OneAtATime(IS_PRUNING);
    http.post('/build/prune', {
      schema: { querystring: PruneCachesQuery, response: { 200: PrunedCaches } },
      handler: async ({ query }) => {
        const matches = cacheFilter(query.filters, engine.clock.now());
        const limits = {
          maxUsedBytes: query['max-used-space'] ?? 0,
          minFreeBytes: query['min-free-space'] ?? 0,
          reservedBytes: query['reserved-space'] || query['keep-storage'] || 0,
        };
        const { ids, bytes } = await pruning.run(async () => await pruneBuildCaches(engine, { limits, matches }));
        return { CachesDeleted: ids.length === 0 ? null : ids, SpaceReclaimed: bytes };
      },
    });

    http.post('/build/cancel', {
      schema: { querystring: CancelBuildQuery },
      handler: ({ query: { id = '' } }, reply) => {
        refuseIf(id === '', 'build ID not provided');
        builds.cancel(id);
        return reply.type('application/json').send();
      },
    });
  };

function canceled(cause: unknown): EngineError {
  return new EngineError('failed', 'the build was canceled', { cause });
}

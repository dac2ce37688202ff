import type { Engine } from '../engine.ts';
import { logUnexpected } from '../http/errors.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { openStream } from '../http/streams/stream.ts';
import { IS_PRUNING } from '../http/values/prune-filters.ts';
import { isBelow } from '../http/versions/api-version.ts';
import { OneAtATime } from '../lib/concurrency/one-at-a-time.ts';
import { messageOf } from '../lib/failure-message.ts';
import { BuildAnswer } from './build-answer.ts';
import { buildFromRequest } from './build-request.ts';
import { cacheFilter, pruneBuildCaches } from './cache/prune.ts';
import { buildOptions } from './options.ts';
import { BuildQuery, PruneCachesQuery, PrunedCaches } from './schema.ts';
import { StepFailed } from './steps/step-failed.ts';

export const buildRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.post('/build', {
      schema: { querystring: BuildQuery },
      handler: async (request, reply) => {
        const options = buildOptions(request.query, request.headers);
        const signal = clientGone(reply.raw);
        const answer = new BuildAnswer(() => openStream(reply), options.isQuiet);
        try {
          const body = request.raw;
          const wantsAux = !isBelow(request.apiVersion, '1.30');
          const image = await buildFromRequest(engine, { options, body, client: answer, signal, wantsAux });
          if (options.isQuiet) answer.send({ stream: `${image.id}\n` });
        } catch (error) {
          if (signal.aborted) return;
          await answer.sendKept();
          if (!answer.hasBegun) throw error;
          logUnexpected(error, request);
          const message = messageOf(error);
          const code = error instanceof StepFailed ? { code: error.exitCode } : {};
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
        const keepBytes = query['keep-storage'] ?? 0;
        const { ids, bytes } = await pruning.run(async () => await pruneBuildCaches(engine, { keepBytes, matches }));
        return { CachesDeleted: ids.length === 0 ? null : ids, SpaceReclaimed: bytes };
      },
    });
  };

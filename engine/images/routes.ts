import type { IncomingMessage } from 'node:http';

import { Type } from 'typebox';

import { applyChanges } from '../buildfile/changes.ts';
import type { Engine } from '../engine.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { readJson } from '../http/streams/body.ts';
import { ClientGone, clientGone } from '../http/streams/client-gone.ts';
import { openStream, type ResponseStream } from '../http/streams/stream.ts';
import { parseFilters } from '../http/values/filters.ts';
import { IS_PRUNING, parsePruneFilters, PruneQuery } from '../http/values/prune-filters.ts';
import { OneAtATime } from '../lib/concurrency/one-at-a-time.ts';
import { EngineError } from '../lib/errors.ts';
import { EMPTY_CONFIG } from '../records/run-config.ts';
import { credentialsIn, parseRegistryAuth, type Credentials } from '../registry/auth/credentials.ts';
import { loadImages } from './archives/load.ts';
import { chooseImages, saveImages } from './archives/save.ts';
import { imageHistory } from './configuration/history.ts';
import { parseJsonPlatform, parseJsonPlatforms, parsePlatform, type Platform } from './configuration/platform.ts';
import { fetchArchive } from './import/fetch.ts';
import { importImage } from './import/import.ts';
import { inspectImage } from './inspect.ts';
import { listedSummaries } from './list-summaries.ts';
import { IMAGE_FILTERS, listImages } from './list.ts';
import { imageStatements } from './manifests/attestations.ts';
import { checkArchives } from './missing-files.ts';
import { parseImportName, parsePulled, parseReference, withDefaultTag } from './names/reference.ts';
import { tagImage } from './names/tag.ts';
import { attestationStatement, deleteResult, distributionInspect, historyStep } from './present.ts';
import { streamProgress } from './progress/progress-stream.ts';
import type { Progress } from './progress/progress.ts';
import { deleteImage, deletePlatforms } from './removal/delete.ts';
import { pruneImages } from './removal/prune.ts';
import * as wire from './schema.ts';
import { inspectDistribution } from './transfers/distribution.ts';
import { pullImages } from './transfers/pull.ts';
import { pushImages } from './transfers/push.ts';
import { imageListSteps } from './versions.ts';

const TAR = 'application/x-tar';

export const imageRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.get('/images/json', {
      schema: { querystring: wire.ListImagesQuery, response: { 200: Type.Array(wire.ImageSummary) } },
      config: { steps: imageListSteps },
      handler: async ({ query }) => {
        const filters = parseFilters(query.filters, IMAGE_FILTERS);
        const listed = await listImages(engine, { all: query.all ?? false, name: query.filter, filters });
        const identity = query.identity ?? false;
        const manifests = identity || (query.manifests ?? false);
        return listedSummaries(engine, listed, { sharedSizes: query['shared-size'] ?? false, manifests, identity });
      },
    });

    http.post('/images/create', {
      schema: { querystring: wire.CreateImageQuery },
      handler: async (request, reply) => {
        const { fromImage, fromSrc, repo, tag, message, changes = [] } = request.query;
        const platform = parsePlatform(request.query.platform);
        if (fromImage !== undefined && fromImage !== '') {
          const reference = parsePulled(fromImage, tag);
          const credentials = parseRegistryAuth(request.headers['x-registry-auth']);
          const signal = clientGone(reply.raw);
          await streamProgress(request, reply, async (report) => {
            await pullImages(engine, { reference, credentials, report, signal, platform });
          });
          return;
        }
        if (fromSrc === undefined || fromSrc === '') {
          throw new EngineError('invalid', 'fromImage or fromSrc is required');
        }
        const options = {
          config: applyChanges([changes].flat(), EMPTY_CONFIG),
          message: message || `Imported from ${fromSrc}`,
          name: parseImportName(repo, tag),
          platform,
        };
        await streamProgress(request, reply, async (report) => {
          const upload = fromSrc === '-' ? request.raw : await fetchArchive(fromSrc, report);
          const image = await importImage(engine, upload, { ...options, signal: clientGone(reply.raw) });
          report({ status: image.id });
        });
      },
    });

    http.get('/images/:ref/json', {
      schema: { params: wire.ImageRef, querystring: wire.InspectImageQuery, response: { 200: wire.ImageInspect } },
      handler: ({ params, query }) => {
        const platform = parseJsonPlatform(query.platform);
        if (query.manifests === true && platform !== undefined) {
          throw new EngineError('invalid', 'conflicting options: manifests and platform options cannot both be set');
        }
        return inspectImage(engine, params.ref, { platform, manifests: query.manifests ?? false });
      },
    });

    http.get('/images/:ref/history', {
      schema: {
        params: wire.ImageRef,
        querystring: wire.ImageHistoryQuery,
        response: { 200: Type.Array(wire.HistoryStep) },
      },
      handler: ({ params, query }) => {
        const image = engine.images.find(params.ref, parseJsonPlatform(query.platform));
        return imageHistory(engine, image).map(historyStep);
      },
    });

    http.get('/images/:ref/attestations', {
      schema: {
        params: wire.ImageRef,
        querystring: wire.AttestationsQuery,
        response: { 200: Type.Array(wire.AttestationStatement) },
      },
      handler: ({ params, query }) => {
        const types = [query.type ?? []].flat().filter((type) => type.trim() !== '');
        const platform = parseJsonPlatform(query.platform);
        const wanted = { platform, types, withContent: query.statement ?? false };
        return imageStatements(engine, params.ref, wanted).map(attestationStatement);
      },
    });

    http.post('/images/:ref/push', {
      schema: { params: wire.ImageRef, querystring: wire.PushImageQuery },
      handler: async (request, reply) => {
        const reference = parsePulled(request.params.ref, request.query.tag);
        const platform = parseJsonPlatform(request.query.platform);
        const header = request.headers['x-registry-auth'] ?? '';
        const credentials = header === '' ? await credentialsInBody(request.raw) : parseRegistryAuth(header);
        const signal = clientGone(reply.raw);
        await streamProgress(request, reply, async (report) => {
          await pushImages(engine, { reference, credentials, report, signal, platform });
        });
      },
    });

    http.post('/images/:ref/tag', {
      schema: { params: wire.ImageRef, querystring: wire.TagImageQuery },
      handler: async ({ params, query }, reply) => {
        tagImage(engine, params.ref, query.repo ?? '', query.tag);
        return reply.code(201).send();
      },
    });

    http.delete('/images/:ref', {
      schema: {
        params: wire.ImageRef,
        querystring: wire.DeleteImageQuery,
        response: { 200: Type.Array(wire.DeleteResult) },
      },
      handler: ({ params, query }) => {
        const { force = false, noprune = false } = query;
        const platforms = parseJsonPlatforms(query.platforms);
        if (platforms.length > 0) return deletePlatforms(engine, params.ref, platforms, force).map(deleteResult);
        return deleteImage(engine, params.ref, { force, noprune }).map(deleteResult);
      },
    });

    const pruning = new OneAtATime(IS_PRUNING);
    http.post('/images/prune', {
      schema: { querystring: PruneQuery, response: { 200: wire.PrunedImages } },
      handler: async ({ query }) => {
        const filters = parsePruneFilters(query.filters, ['until', 'dangling'], engine.clock.now());
        const { removals, bytes } = await pruning.run(async () => await pruneImages(engine, filters));
        return { ImagesDeleted: removals.length === 0 ? null : removals.map(deleteResult), SpaceReclaimed: bytes };
      },
    });

    http.get('/distribution/:ref/json', {
      schema: { params: wire.ImageRef, response: { 200: wire.DistributionInspect } },
      config: { errors: { unauthorized: 401 } },
      handler: async (request, reply) => {
        const reference = withDefaultTag(parseReference(request.params.ref));
        const credentials = parseRegistryAuth(request.headers['x-registry-auth']);
        const signal = clientGone(reply.raw);
        return distributionInspect(await inspectDistribution(engine, { reference, credentials, signal }));
      },
    });

    http.get('/images/:ref/get', {
      schema: { params: wire.ImageRef, querystring: wire.SaveImageQuery },
      handler: async (request, reply) => {
        const platforms = parseJsonPlatforms(request.query.platform);
        const chosen = wholeImages(engine, [request.params.ref], platforms);
        await sendArchive(saveImages(engine, chosen, platforms), openStream(reply, { contentType: TAR }));
      },
    });

    http.get('/images/get', {
      schema: { querystring: wire.SaveImagesQuery },
      handler: async (request, reply) => {
        const platforms = parseJsonPlatforms(request.query.platform);
        const chosen = wholeImages(engine, [request.query.names ?? []].flat(), platforms);
        await sendArchive(saveImages(engine, chosen, platforms), openStream(reply, { contentType: TAR }));
      },
    });

    http.post('/images/load', {
      schema: { querystring: wire.LoadImagesQuery },
      handler: async (request, reply) => {
        const isQuiet = request.query.quiet ?? false;
        const platforms = parseJsonPlatforms(request.query.platform);
        await streamProgress(request, reply, async (report) => {
          const tell = (line: Progress): void => {
            if (!isQuiet || line.status === undefined) report(line);
          };
          await loadImages(engine, request.raw, tell, { platforms, signal: clientGone(reply.raw) });
        });
      },
    });
  };

/** Old clients send the credentials of a push as its body. */
async function credentialsInBody(request: IncomingMessage): Promise<Credentials> {
  const body = await readJson(request);
  if (body === undefined) throw new EngineError('invalid', 'Bad parameters and missing X-Registry-Auth: EOF');
  return credentialsIn(body);
}

/** All checks happen before the first byte is sent. */
function wholeImages(
  engine: Engine,
  refs: readonly string[],
  platforms: readonly Platform[],
): ReturnType<typeof chooseImages> {
  const chosen = chooseImages(engine, refs, platforms);
  for (const { image } of chosen) checkArchives(engine, image);
  return chosen;
}

/** A failure in the middle breaks the connection, so that no client takes the archive for complete. */
async function sendArchive(archive: AsyncIterable<Buffer>, stream: ResponseStream): Promise<void> {
  const { output, signal } = stream;
  try {
    for await (const chunk of archive) await stream.pass(chunk);
    output.end();
  } catch (error) {
    output.destroy();
    if (!signal.aborted && !(error instanceof ClientGone)) throw error;
  }
}

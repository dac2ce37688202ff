import type { Duplex } from 'node:stream';

import { Type } from 'typebox';

import type { Engine } from '../engine.ts';
import type { Reply } from '../http/reply.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { hijack, rawStreamType, wantsUpgrade } from '../http/streams/hijack.ts';
import { openStream } from '../http/streams/stream.ts';
import { prepareWebSocket, withoutFrames } from '../http/streams/websocket.ts';
import { IS_PRUNING, parsePruneFilters, PruneQuery } from '../http/values/prune-filters.ts';
import { isBelow } from '../http/versions/api-version.ts';
import { answerFor } from '../http/versions/steps.ts';
import { parsePlatform } from '../images/configuration/platform.ts';
import { OneAtATime } from '../lib/concurrency/one-at-a-time.ts';
import { EngineError, refuseIf } from '../lib/errors.ts';
import { signalNumber } from '../lib/notations/signal-number.ts';
import { createContainer } from './lifecycle/create.ts';
import { killContainer } from './lifecycle/kill.ts';
import { pauseContainer, unpauseContainer } from './lifecycle/pause.ts';
import { pruneContainers } from './lifecycle/prune.ts';
import { removeContainer } from './lifecycle/remove.ts';
import { renameContainer } from './lifecycle/rename.ts';
import { resizeContainer } from './lifecycle/resize.ts';
import { restartContainer } from './lifecycle/restart.ts';
import { stopContainer, type StopOptions } from './lifecycle/stop.ts';
import { updateContainer } from './lifecycle/update.ts';
import { beginWait, type LastRun, type WaitCondition } from './lifecycle/wait.ts';
import { removeLink } from './links/links.ts';
import { inspectContainer } from './queries/inspect.ts';
import { listContainers } from './queries/list.ts';
import { topContainer } from './queries/top.ts';
import { startContainer } from './runs/start.ts';
import * as wire from './schema.ts';
import { Stats, StatsQuery, UsageLine, UsageQuery, UsageRecord } from './stats/schema.ts';
import { oneReading, oneSample, streamStats } from './stats/stats.ts';
import { streamUsage, USAGE_INTERVAL_SECONDS } from './stats/usage.ts';
import { attachContainer, prepareAttach } from './streams/attach.ts';
import { deliver } from './streams/deliver.ts';
import { prepareLogs, readContainerLog } from './streams/logs.ts';
import { createSteps, inspectForm, listSteps, statsSteps, updateSteps, waitSteps, wrongState } from './versions.ts';

export const containerRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.get('/containers/json', {
      schema: { querystring: wire.ListQuery, response: { 200: Type.Array(wire.Summary) } },
      config: { steps: listSteps },
      handler: async ({ query }) => await listContainers(engine, query),
    });

    http.post('/containers/create', {
      schema: { querystring: wire.CreateQuery, body: wire.CreateBody, response: { 201: wire.Created } },
      config: { steps: createSteps },
      handler: async ({ query, body }, reply) => {
        const { container, warnings } = await createContainer(engine, body, query.name, {
          platform: parsePlatform(query.platform),
        });
        return reply.code(201).send({ Id: container.id, Warnings: warnings });
      },
    });

    http.get('/containers/:ref/json', {
      // Already JSON text, sent unchanged.
      schema: {
        params: wire.ContainerRef,
        querystring: wire.InspectQuery,
        response: { 200: Type.Unsafe<string>(wire.Inspect) },
      },
      handler: async ({ params, query, apiVersion }, reply) => {
        const form = inspectForm(apiVersion);
        const text = await inspectContainer(engine, params.ref, { withSize: query.size ?? false, form });
        return reply.type('application/json').send(text);
      },
    });

    http.get('/containers/:ref/top', {
      schema: { params: wire.ContainerRef, querystring: wire.TopQuery, response: { 200: wire.Top } },
      config: { errors: wrongState },
      handler: async ({ params, query }) => await topContainer(engine, params.ref, query.ps_args),
    });

    http.get('/containers/:ref/logs', {
      schema: { params: wire.ContainerRef, querystring: wire.LogsQuery },
      config: { errors: { conflict: 500 } }, // a log driver that keeps nothing
      handler: async (request, reply) => {
        const prepared = prepareLogs(engine, request.params.ref, request.query);
        const gone = new AbortController();
        const { follow = false } = request.query;
        const read = readContainerLog(engine, prepared, follow, gone.signal);
        const { Tty: tty } = prepared.container.config;
        if (wantsUpgrade(request.raw)) await sendUpgraded(hijack(request, reply, { tty }), read, gone);
        else await sendStreamed(reply, read, gone, { contentType: rawStreamType(request, { tty }), isReady: !follow });
      },
    });

    http.get('/containers/stats', {
      schema: { querystring: UsageQuery, response: { 200: UsageLine } },
      handler: async ({ query }, reply) => {
        const stream = openStream(reply);
        await streamUsage(engine, (query.interval ?? USAGE_INTERVAL_SECONDS) * 1000, stream);
        stream.end();
      },
    });

    http.get('/containers/:ref/stats', {
      schema: { params: wire.ContainerRef, querystring: StatsQuery, response: { 200: Type.Unsafe<unknown>(Stats) } },
      config: { steps: statsSteps },
      handler: async (request, reply) => {
        const container = engine.containers.find(request.params.ref);
        const { stream: isStream = true, 'one-shot': isOneShot = false } = request.query;
        refuseIf(isStream && isOneShot, 'cannot have stream=true and one-shot=true');
        if (isOneShot) return oneReading(engine, container);
        if (!isStream) return await oneSample(engine, container, clientGone(reply.raw));
        const older = answerFor(statsSteps, request);
        const stream = openStream(reply);
        await streamStats(engine, container, stream, older);
        stream.end();
      },
    });

    http.get('/containers/:ref/usage', {
      schema: { params: wire.ContainerRef, response: { 200: UsageRecord } },
      handler: ({ params }) => engine.usageHistory.of(engine.containers.find(params.ref).id),
    });

    http.post('/containers/:ref/resize', {
      schema: { params: wire.ContainerRef, querystring: wire.ResizeQuery },
      config: { errors: wrongState },
      handler: async ({ params, query }, reply) => {
        await resizeContainer(engine, params.ref, { width: query.w, height: query.h });
        return reply.code(200).type('text/plain').send('');
      },
    });

    http.post('/containers/:ref/start', {
      schema: { params: wire.ContainerRef, querystring: wire.StartQuery, response: { 204: Type.Null() } },
      config: { errors: wrongState },
      handler: async ({ params }, reply) => {
        await startContainer(engine, params.ref);
        return reply.code(204).send(null);
      },
    });

    http.post('/containers/:ref/stop', {
      schema: { params: wire.ContainerRef, querystring: wire.StopQuery, response: { 204: Type.Null() } },
      handler: async ({ params, query }, reply) => {
        await stopContainer(engine, params.ref, stopOptions(query));
        return reply.code(204).send(null);
      },
    });

    http.post('/containers/:ref/restart', {
      schema: { params: wire.ContainerRef, querystring: wire.StopQuery, response: { 204: Type.Null() } },
      config: { errors: wrongState },
      handler: async ({ params, query }, reply) => {
        await restartContainer(engine, params.ref, stopOptions(query));
        return reply.code(204).send(null);
      },
    });

    http.post('/containers/:ref/kill', {
      schema: { params: wire.ContainerRef, querystring: wire.KillQuery, response: { 204: Type.Null() } },
      config: { errors: wrongState },
      handler: async ({ params, query }, reply) => {
        await killContainer(engine, params.ref, query.signal);
        return reply.code(204).send(null);
      },
    });

    http.post('/containers/:ref/update', {
      schema: { params: wire.ContainerRef, body: wire.UpdateBody, response: { 200: wire.Updated } },
      config: { steps: updateSteps, needsBody: true },
      handler: async ({ params, body }) => {
        return { Warnings: await updateContainer(engine, params.ref, body) };
      },
    });

    http.post('/containers/:ref/rename', {
      schema: { params: wire.ContainerRef, querystring: wire.RenameQuery, response: { 204: Type.Null() } },
      handler: async ({ params, query }, reply) => {
        renameContainer(engine, params.ref, query.name);
        return reply.code(204).send(null);
      },
    });

    http.post('/containers/:ref/pause', {
      schema: { params: wire.ContainerRef, response: { 204: Type.Null() } },
      config: { errors: wrongState },
      handler: async ({ params }, reply) => {
        pauseContainer(engine, params.ref);
        return reply.code(204).send(null);
      },
    });

    http.post('/containers/:ref/unpause', {
      schema: { params: wire.ContainerRef, response: { 204: Type.Null() } },
      config: { errors: wrongState },
      handler: async ({ params }, reply) => {
        unpauseContainer(engine, params.ref);
        return reply.code(204).send(null);
      },
    });

    http.post('/containers/:ref/attach', {
      schema: { params: wire.ContainerRef, querystring: wire.AttachQuery },
      handler: async (request, reply) => {
        const attach = prepareAttach(engine, request.params.ref, request.query);
        const { Tty: tty } = attach.container.config;
        await attachContainer(engine, attach, () => hijack(request, reply, { tty }));
      },
    });

    http.get('/containers/:ref/attach/ws', {
      schema: { params: wire.ContainerRef, querystring: wire.AttachQuery },
      handler: async (request, reply) => {
        const attach = prepareAttach(engine, request.params.ref, request.query);
        const accept = prepareWebSocket(request, reply);
        await attachContainer(engine, attach, () => (attach.container.config.Tty ? accept() : withoutFrames(accept())));
      },
    });

    http.post('/containers/:ref/wait', {
      schema: { params: wire.ContainerRef, querystring: wire.WaitQuery, response: { 200: wire.WaitResult } },
      handler: async (request, reply) => {
        const { params, query, apiVersion } = request;
        const knowsConditions = !isBelow(apiVersion, '1.30');
        const condition = knowsConditions ? waitCondition(query.condition) : 'not-running';
        const ended = beginWait(engine, params.ref, condition, clientGone(reply.raw));
        const answer = answerFor(waitSteps, request) ?? ((result: wire.WaitResult) => result);
        if (!knowsConditions) return answer(waitResult(await ended));
        // Clients start the container when they have the head: from then on no end is missed.
        const stream = openStream(reply);
        const last = await ended;
        if (last !== undefined) await stream.write(JSON.stringify(answer(waitResult(last))));
        stream.end();
      },
    });

    const pruning = new OneAtATime(IS_PRUNING);
    http.post('/containers/prune', {
      schema: { querystring: PruneQuery, response: { 200: wire.Pruned } },
      handler: async ({ query }, reply) => {
        const filters = parsePruneFilters(query.filters, ['until'], engine.clock.now());
        const signal = clientGone(reply.raw);
        const { ids, bytes } = await pruning.run(async () => await pruneContainers(engine, filters, signal));
        return { ContainersDeleted: ids.length === 0 ? null : ids, SpaceReclaimed: bytes };
      },
    });

    http.delete('/containers/:ref', {
      schema: { params: wire.ContainerRef, querystring: wire.RemoveQuery, response: { 204: Type.Null() } },
      handler: async ({ params, query }, reply) => {
        if (query.link === true) removeLink(engine.containers, params.ref);
        else await removeContainer(engine, params.ref, { force: query.force, volumes: query.v });
        return reply.code(204).send(null);
      },
    });
  };

function stopOptions({ t, signal = '' }: wire.StopQuery): StopOptions {
  return { graceSeconds: t, signal: signal === '' ? undefined : signalNumber(signal) };
}

function waitCondition(text = ''): WaitCondition {
  if (text === '' || text === 'not-running') return 'not-running';
  if (text === 'next-exit' || text === 'removed') return text;
  throw new EngineError('invalid', `invalid condition: "${text}"`);
}

function waitResult(last: LastRun | undefined): wire.WaitResult {
  if (last === undefined) throw new EngineError('failed', 'the client has gone');
  return { StatusCode: last.exitCode, ...(last.error !== '' && { Error: { Message: last.error } }) };
}

async function sendStreamed(
  reply: Reply,
  pieces: AsyncIterable<Buffer>,
  gone: AbortController,
  options: { contentType: string; isReady: boolean },
): Promise<void> {
  const { output, signal } = openStream(reply, options);
  signal.addEventListener('abort', () => gone.abort());
  await deliver(pieces, output);
  output.end();
}

async function sendUpgraded(client: Duplex, pieces: AsyncIterable<Buffer>, gone: AbortController): Promise<void> {
  client.once('close', () => gone.abort());
  client.resume(); // only to see its end
  await deliver(pieces, client);
  client.end();
}

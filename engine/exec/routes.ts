import { ContainerRef, ResizeQuery } from '../containers/schema.ts';
import type { Engine } from '../engine.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { hijack } from '../http/streams/hijack.ts';
import { prepareWebSocket, withoutFrames } from '../http/streams/websocket.ts';
import { isBelow } from '../http/versions/api-version.ts';
import { createExec, terminalSize } from './create.ts';
import { presentExec } from './present.ts';
import { resizeExec } from './resize.ts';
import { ExecCreateBody, ExecCreated, ExecId, ExecInspect, ExecStartBody } from './schema.ts';
import { runSession } from './session.ts';
import { claimExec, runExec } from './start.ts';
import { resizeSteps } from './versions.ts';

/** Endpoints 25 to 28. */
export const execRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.post('/containers/:ref/exec', {
      schema: { params: ContainerRef, body: ExecCreateBody, response: { 201: ExecCreated } },
      handler: async ({ params, body, apiVersion }, reply) => {
        const refusesUnknownUsers = !isBelow(apiVersion, '1.42');
        const { id } = await createExec(engine, params.ref, body, { refusesUnknownUsers });
        return reply.code(201).send({ Id: id, Warnings: [] });
      },
    });

    http.post('/exec/:id/start', {
      schema: { params: ExecId, body: ExecStartBody },
      handler: async (request, reply) => {
        const { Detach: detached = false, Tty: tty = false, ConsoleSize } = request.body;
        const claimed = claimExec(engine, request.params.id, terminalSize(ConsoleSize));
        if (detached) {
          await runExec(engine, claimed);
          return reply.code(200).send();
        }
        await runSession(engine, claimed, tty, hijack(request, reply, { tty }));
      },
    });

    // Browsers can take over a connection by WebSocket alone.
    http.get('/exec/:id/ws', {
      schema: { params: ExecId },
      handler: async (request, reply) => {
        const accept = prepareWebSocket(request, reply);
        const claimed = claimExec(engine, request.params.id);
        const { tty } = claimed.exec;
        // A closed tab cannot come back to its shell.
        await runSession(engine, claimed, tty, tty ? accept() : withoutFrames(accept()), { endsWithClient: tty });
      },
    });

    http.post('/exec/:id/resize', {
      schema: { params: ExecId, querystring: ResizeQuery },
      config: { steps: resizeSteps },
      handler: async ({ params, query }, reply) => {
        await resizeExec(engine, params.id, { width: query.w, height: query.h });
        return reply.code(200).type('text/plain').send('');
      },
    });

    http.get('/exec/:id/json', {
      schema: { params: ExecId, response: { 200: ExecInspect } },
      handler: ({ params }) => presentExec(engine.execs.find(params.id)),
    });
  };

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';

import { parseDetachKeys } from '../containers/detach-keys.ts';
import { relay } from '../containers/relay.ts';
import { ContainerRef, ResizeQuery } from '../containers/schema.ts';
import type { Engine } from '../engine.ts';
import { hijack } from '../http/hijack.ts';
import { EngineError } from '../lib/errors.ts';
import { createExec } from './create.ts';
import { ExecCreateBody, ExecCreated, ExecId, ExecInspect, ExecStartBody } from './schema.ts';
import { claimExec, runExec } from './start.ts';
import type { Exec } from './store.ts';

/** Endpoints 25 to 28. */
export const execRoutes =
  (engine: Engine): FastifyPluginAsyncTypebox =>
  // oxlint-disable-next-line require-await -- a plugin is asynchronous by its type
  async (http) => {
    http.post('/containers/:ref/exec', {
      schema: { params: ContainerRef, body: ExecCreateBody, response: { 201: ExecCreated } },
      handler: async ({ params, body }, reply) => {
        const { id } = createExec(engine, params.ref, body);
        return await reply.code(201).send({ Id: id, Warnings: [] });
      },
      config: { errors: { invalid: 500 } },
    });

    http.post('/exec/:id/start', {
      schema: { params: ExecId, body: ExecStartBody },
      handler: async (request, reply) => {
        const claimed = claimExec(engine, request.params.id);
        if (request.body.Detach === true) {
          await runExec(engine, claimed);
          return await reply.code(200).send();
        }
        const { exec } = claimed;
        const keys = exec.tty ? parseDetachKeys(exec.detachKeys) : undefined;
        const recorded = Promise.withResolvers<void>();
        let session = Promise.resolve();
        const running = runExec(engine, claimed, (stream) => {
          const client = hijack(request, reply);
          session = relay(client, stream, { stdin: exec.openStdin, detachKeys: keys }).then(async (how) => {
            // An inspect after the end of the stream must agree.
            if (how === 'ended') await recorded.promise;
            client.end();
          });
        });
        // A failure after the switch of protocols can only end the stream: the exit code tells the rest.
        running.then((run) => run.recorded).then(recorded.resolve, () => recorded.resolve());
        await running.catch((error: unknown) => {
          if (!reply.sent) throw error;
        });
        await session;
        return reply;
      },
    });

    http.post('/exec/:id/resize', {
      schema: { params: ExecId, querystring: ResizeQuery },
      handler: async ({ params, query }, reply) => {
        const { id } = engine.execs.find(params.id);
        const shim = engine.execShims.get(id);
        if (shim === undefined) throw new EngineError('notFound', `No running exec instance: ${id}`);
        await shim.resize(query.w, query.h);
        return await reply.code(201).type('text/plain').send();
      },
    });

    http.get('/exec/:id/json', {
      schema: { params: ExecId, response: { 200: ExecInspect } },
      handler: ({ params }) => present(engine.execs.find(params.id)),
    });
  };

function present(exec: Exec): ExecInspect {
  const [entrypoint = '', ...rest] = exec.command;
  const { state } = exec;
  return {
    ID: exec.id,
    Running: state.status === 'running' || state.status === 'starting',
    ExitCode: state.status === 'ended' ? state.exitCode : null,
    ProcessConfig: {
      tty: exec.tty,
      entrypoint,
      arguments: rest,
      privileged: exec.privileged,
      ...(exec.user !== '' && { user: exec.user }),
    },
    OpenStdin: exec.openStdin,
    OpenStderr: exec.openStderr,
    OpenStdout: exec.openStdout,
    CanRemove: false,
    ContainerID: exec.containerId,
    DetachKeys: exec.detachKeys,
    Pid: state.status === 'running' ? state.pid : 0,
  };
}

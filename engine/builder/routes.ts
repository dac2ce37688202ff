import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';

import type { Engine } from '../engine.ts';
import { logUnexpected } from '../http/errors.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { openStream, type ResponseStream } from '../http/streams/stream.ts';
import type { Progress } from '../images/progress.ts';
import { messageOf } from '../lib/failure-message.ts';
import { buildFromRequest } from './build-request.ts';
import { buildOptions } from './options.ts';
import { BuildQuery } from './schema.ts';
import { StepFailed } from './steps/step-failed.ts';

export const buildRoutes =
  (engine: Engine): FastifyPluginAsyncTypebox =>
  // oxlint-disable-next-line require-await -- a plugin is asynchronous by its type
  async (http) => {
    http.post('/build', {
      schema: { querystring: BuildQuery },
      handler: async (request, reply) => {
        const options = buildOptions(request.query, request.headers);
        const signal = clientGone(reply.raw);
        const opened: { stream?: ResponseStream } = {};
        const kept: Progress[] = [];
        const send = (line: unknown): void => {
          opened.stream ??= openStream(request, reply);
          const { stream } = opened;
          stream.line(line).catch(() => stream.output.destroy());
        };
        const report = (line: Progress): void => (options.isQuiet ? void kept.push(line) : send(line));
        try {
          const body = request.raw;
          const image = await buildFromRequest(engine, { options, body, report, signal, wantsAux: false });
          if (options.isQuiet) send({ stream: `${image.id}\n` });
        } catch (error) {
          if (signal.aborted) return;
          for (const line of kept) send(line);
          if (opened.stream === undefined) throw error;
          logUnexpected(error, request);
          const message = messageOf(error);
          const code = error instanceof StepFailed ? { code: error.exitCode } : {};
          send({ errorDetail: { ...code, message }, error: message });
        }
        opened.stream?.end();
      },
    });
  };

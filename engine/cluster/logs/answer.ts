import { Type, type Static } from 'typebox';

import { deliver } from '../../containers/streams/deliver.ts';
import type { Engine } from '../../engine.ts';
import type { Reply } from '../../http/reply.ts';
import type { ApiRequest } from '../../http/request.ts';
import { rawStreamType } from '../../http/streams/hijack.ts';
import { openStream } from '../../http/streams/stream.ts';
import type { Manager } from '../membership/manager.ts';
import type { TaskTemplate } from '../state/task-template.ts';
import type { LogRequest } from '../wire/log-messages.ts';
import { readLogOptions, readLogs } from './read.ts';

const flag = Type.Optional(Type.Boolean({ default: false }));

/** Parameters of `GET /services/{id}/logs` and `GET /tasks/{id}/logs`. */
export const ServiceLogsQuery = Type.Object({
  details: flag,
  follow: flag,
  stdout: flag,
  stderr: flag,
  timestamps: flag,
  since: Type.Optional(Type.String({ description: 'UNIX seconds or RFC 3339' })),
  tail: Type.Optional(Type.String({ description: '`all` or a number of lines of each task' })),
});

type Source = Omit<LogRequest, 'options'> & Readonly<{ template: TaskTemplate | undefined }>;
type LogsApiRequest = Pick<ApiRequest, 'headers'> & ApiRequest & { query: Static<typeof ServiceLogsQuery> };

/** Answers with the lines of a service's tasks, or of one task. All checks come before the head is sent. */
export async function sendLogs(
  { clock, manager }: Pick<Engine, 'clock'> & Readonly<{ manager: Manager }>,
  { template, ...source }: Source,
  request: LogsApiRequest,
  reply: Reply,
): Promise<void> {
  const { query } = request;
  const asked: LogRequest = { ...source, options: readLogOptions(query) };
  const isTty = template !== undefined && 'tty' in template.container && template.container.tty === true;
  const form = { timestamps: query.timestamps ?? false, details: query.details ?? false, framed: !isTty };
  const stream = await manager.openLogs(asked);
  const { output, signal } = openStream(reply, { contentType: rawStreamType(request, { tty: isTty }) });
  signal.addEventListener('abort', () => stream.destroy(), { once: true });
  if (signal.aborted) stream.destroy();
  await deliver(readLogs({ clock }, { stream, request: asked, form }), output);
  output.end();
}

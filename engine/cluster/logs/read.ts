import type { Readable } from 'node:stream';

import type { LogsRequest } from '../../containers/streams/logs.ts';
import type { Engine } from '../../engine.ts';
import { encodeFrame } from '../../http/streams/frames.ts';
import { parseTime } from '../../http/values/times.ts';
import { EngineError } from '../../lib/errors.ts';
import { describeAttributes } from '../../logs/log-details.ts';
import { LOG_LIMITS, ReadLog, type LogOptions, type LogRequest } from '../wire/log-messages.ts';
import { readMessages } from '../wire/read-messages.ts';

/** The form of the lines for the client. */
type LogForm = Readonly<{
  timestamps: boolean;
  details: boolean;
  /** 8-byte frames, or the bare text as a tty's log is sent. */
  framed: boolean;
}>;

type Lines = Readonly<{ stream: Readable; request: LogRequest; form: LogForm }>;
type Line = Extract<ReadLog, { say: 'line' }>;

const CONTEXT = 'com.docker.swarm';
const STREAMS = { stdout: 1, stderr: 2, engine: 3 } as const;
const LEADER_GONE = 'the leader of the cluster has changed: ask again';

/** The options by dockerd's checks. Throws `invalid`. */
export function readLogOptions({
  stdout = false,
  stderr = false,
  follow = false,
  since,
  tail,
}: Omit<LogsRequest, 'until'>): LogOptions {
  if (!stdout && !stderr) throw new EngineError('invalid', 'Bad parameters: you must choose at least one stream');
  const count = tailOf(tail);
  const from = since === undefined || since === '' || since === '0' ? undefined : parseTime('since', since);
  return {
    ...{ stdout, stderr, follow },
    ...(count === undefined ? {} : { tail: count }),
    ...(from === undefined ? {} : { since: from.toString() }),
  };
}

/** Pieces for the client, as the lines come; ends with the stream. */
export async function* readLogs(
  { clock }: Pick<Engine, 'clock'>,
  { stream, request, form }: Lines,
): AsyncGenerator<Buffer> {
  const { options } = request;
  for await (const message of readMessages(stream, { schema: ReadLog, limits: LOG_LIMITS, clock })) {
    if (message.say === 'end') return yield* complaint(message.missing, form);
    if (options[message.stream]) yield encodeLine(message, form);
  }
  yield encodeError(LEADER_GONE, form);
}

function* complaint(missing: readonly string[], form: LogForm): Generator<Buffer> {
  if (missing.length === 0) return;
  const start = 'warning: incomplete log stream. some logs could not be retrieved for the following reasons';
  yield encodeError(`${start}: ${missing.join(', ')}`, form);
}

function encodeLine({ task, node, service, stream, time, attributes, text }: Line, form: LogForm): Buffer {
  const context = { [`${CONTEXT}.node.id`]: node, [`${CONTEXT}.service.id`]: service, [`${CONTEXT}.task.id`]: task };
  const details = form.details ? `${describeAttributes({ ...attributes, ...context })} ` : '';
  const before = `${form.timestamps ? `${time} ` : ''}${details}`;
  return encode(STREAMS[stream], Buffer.concat([Buffer.from(before), Buffer.from(text, 'base64')]), form);
}

/** dockerd's words for what travels inside of the stream. */
function encodeError(reason: string, form: LogForm): Buffer {
  return encode(STREAMS.engine, Buffer.from(`Error grabbing logs: ${reason}\n`), form);
}

function encode(stream: 1 | 2 | 3, payload: Buffer, { framed }: LogForm): Buffer {
  return framed ? encodeFrame(stream, payload) : payload;
}

function tailOf(text = 'all'): number | undefined {
  if (text === '' || text === 'all') return undefined;
  if (!/^[+-]?\d+$/.test(text)) throw new EngineError('invalid', 'tail value must be a positive integer or "all"');
  const count = Number(text);
  if (count < 0) throw new EngineError('invalid', 'negative tail values not supported');
  return Math.min(count, Number.MAX_SAFE_INTEGER);
}

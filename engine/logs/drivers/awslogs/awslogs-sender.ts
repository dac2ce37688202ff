import aws4 from 'aws4';

import { parsePattern, type Pattern } from '../../../lib/notations/pattern.ts';
import { VERSION } from '../../../version.ts';
import { booleanOption } from '../../boolean-option.ts';
import type { Line } from '../../delivery/line.ts';
import type { Sender, SenderContext } from '../../delivery/sender.ts';
import { AwsCredentials, regionOf } from '../../receivers/aws-credentials.ts';
import { HttpReceiver, parseAnswer } from '../../receivers/http-receiver.ts';
import { tagOf } from '../../tag.ts';
import { EVENT_BYTES, eventsByLine, eventsByPattern, multilinePattern, type LogEvent } from './awslogs-events.ts';

const LIMITS = { lines: 8000, bytes: 512 * 1024 };
const MAX_BYTES = 1_048_576;
const MAX_EVENTS = 10_000;
/** The largest time span of the events of one request. */
const MAX_SPAN_MS = 24 * 3600 * 1000 - 1;
const DEFAULT_FLUSH_SECONDS = 5;

/** An answer with an error. */
class Refusal extends Error {
  readonly code: string;
  readonly expectedToken: string | undefined;

  constructor(code: string, message: string, expectedToken: string | undefined) {
    super(`${code}: ${message}`);
    this.code = code;
    this.expectedToken = expectedToken;
  }
}

type PutAnswer = {
  nextSequenceToken?: string;
  rejectedLogEventsInfo?: {
    tooNewLogEventStartIndex?: number;
    tooOldLogEventEndIndex?: number;
    expiredLogEventEndIndex?: number;
  };
};

/** Puts events into one stream of a group; both are created if they are missing. */
export class AwslogsSender implements Sender {
  readonly limits = LIMITS;
  readonly recalls = false;
  readonly pauseMs: number;
  readonly #context: SenderContext;
  readonly #group: string;
  readonly #stream: string;
  readonly #isFirst: Pattern | undefined;
  readonly #http = new HttpReceiver();
  readonly #credentials: AwsCredentials;
  #region: Promise<string> | undefined;
  #hasStream = false;
  #token: string | undefined;

  constructor(context: SenderContext) {
    const { container, options } = context;
    this.#context = context;
    this.#group = options['awslogs-group'] ?? '';
    this.#stream = options['awslogs-stream'] || tagOf(container, '{{.FullID}}');
    const pattern = multilinePattern(options);
    this.#isFirst = pattern === '' ? undefined : parsePattern(pattern);
    this.pauseMs = Number(options['awslogs-force-flush-interval-seconds'] || DEFAULT_FLUSH_SECONDS) * 1000;
    this.#credentials = new AwsCredentials(this.#http, context.clock, options['awslogs-credentials-endpoint']);
  }

  async send(lines: readonly Line[], isLast: boolean): Promise<number> {
    // An event that has waited for its end for the whole interval is sent without it.
    const lastMs = lines.at(-1)!.time.epochMilliseconds;
    const isOld = this.#context.clock.now().epochMilliseconds - lastMs >= this.pauseMs;
    const isAll = isLast || isOld;
    const { events, lines: taken } =
      this.#isFirst === undefined ? eventsByLine(lines, isAll) : eventsByPattern(lines, this.#isFirst, isAll);
    if (events.length > 0 && !this.#hasStream) await this.#createStream();
    for (const batch of batchesOf(events)) await this.#put(batch);
    return taken;
  }

  async #createStream(): Promise<void> {
    const stream = { logGroupName: this.#group, logStreamName: this.#stream };
    try {
      await this.#unlessThere('CreateLogStream', stream);
    } catch (error) {
      const isMissing = error instanceof Refusal && error.code === 'ResourceNotFoundException';
      if (!isMissing || !booleanOption(this.#context.options['awslogs-create-group'])) throw error;
      await this.#unlessThere('CreateLogGroup', { logGroupName: this.#group });
      await this.#unlessThere('CreateLogStream', stream);
    }
    this.#hasStream = true;
  }

  async #unlessThere(action: string, input: object): Promise<void> {
    try {
      await this.#ask(action, input);
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'ResourceAlreadyExistsException') throw error;
    }
  }

  async #put(events: readonly LogEvent[]): Promise<void> {
    const ask = async (): Promise<PutAnswer> =>
      (await this.#ask('PutLogEvents', {
        logEvents: events,
        logGroupName: this.#group,
        logStreamName: this.#stream,
        ...(this.#token !== undefined && { sequenceToken: this.#token }),
      })) as PutAnswer;
    try {
      this.#taken(await ask(), events.length);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // Older services count the requests to a stream, and say which number they expect.
      this.#token = error.expectedToken;
      if (error.code === 'DataAlreadyAcceptedException') return;
      if (error.code === 'ResourceNotFoundException') this.#hasStream = false;
      if (error.code !== 'InvalidSequenceTokenException') throw error;
      this.#taken(await ask(), events.length);
    }
  }

  #taken({ nextSequenceToken, rejectedLogEventsInfo: rejected }: PutAnswer, count: number): void {
    this.#token = nextSequenceToken;
    const tooOld = Math.max(rejected?.tooOldLogEventEndIndex ?? 0, rejected?.expiredLogEventEndIndex ?? 0);
    const tooNew = count - (rejected?.tooNewLogEventStartIndex ?? count);
    if (tooOld + tooNew > 0) this.#context.refused(tooOld + tooNew, 'CloudWatch refuses events of their age');
  }

  async #ask(action: string, input: object): Promise<unknown> {
    const { options } = this.#context;
    this.#region ??= regionOf(this.#http, options['awslogs-region']);
    const region = await this.#regionOrAgain();
    const url = new URL(options['awslogs-endpoint'] || `https://logs.${region}.amazonaws.com`);
    const body = JSON.stringify(input);
    const headers = {
      'content-type': 'application/x-amz-json-1.1',
      'x-amz-target': `Logs_20140328.${action}`,
      'user-agent': `Gantry ${VERSION} (linux)`,
    };
    const request = { service: 'logs', region, host: url.host, method: 'POST', path: url.pathname, headers, body };
    const signed = aws4.sign(request, await this.#credentials.current());
    const answer = await this.#http.ask({
      method: 'POST',
      url,
      headers: signed.headers as Record<string, string>,
      body,
    });
    if (answer.status === 200) return answer.text === '' ? {} : parseAnswer(url, answer);
    throw refusalOf(answer.status, answer.text);
  }

  /** A failure is not kept. */
  async #regionOrAgain(): Promise<string> {
    try {
      return await this.#region!;
    } catch (error) {
      this.#region = undefined;
      throw error;
    }
  }

  async end(): Promise<void> {
    // Each request was answered.
  }

  [Symbol.dispose](): void {
    this.#http[Symbol.dispose]();
  }
}

function refusalOf(status: number, text: string): Error {
  try {
    const body = JSON.parse(text) as { __type?: string; message?: string; expectedSequenceToken?: string | null };
    const code = body.__type?.split('#').at(-1) ?? String(status);
    return new Refusal(code, body.message ?? '', body.expectedSequenceToken ?? undefined);
  } catch {
    return new Error(`the service answered ${status}: ${text.slice(0, 200)}`);
  }
}

/** Splits events, which are in order, into requests of the allowed size. */
function* batchesOf(events: readonly LogEvent[]): Generator<LogEvent[]> {
  let batch: LogEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    const length = Buffer.byteLength(event.message) + EVENT_BYTES;
    const isFar = batch.length > 0 && event.timestamp - batch[0]!.timestamp > MAX_SPAN_MS;
    if (isFar || batch.length === MAX_EVENTS || bytes + length > MAX_BYTES) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(event);
    bytes += length;
  }
  if (batch.length > 0) yield batch;
}

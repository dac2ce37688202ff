import { createHash, createHmac } from 'node:crypto';

import { HttpRecorder, type Asked } from './http-recorder.ts';

export type LogEvent = { timestamp: number; message: string };
type Input = { logGroupName: string; logStreamName: string; sequenceToken?: string; logEvents: LogEvent[] };
type Answer = { status: number; body: string };

export const KEY_ID = 'AKIDEXAMPLE';
export const SECRET = 'a/secret+key';

/** Written from CloudWatch's API reference: groups, streams, events, sequence tokens, and signatures that must be right. */
export class CloudWatch implements AsyncDisposable {
  readonly #wantsTokens: boolean;
  readonly groups = new Set<string>();
  readonly streams = new Map<string, LogEvent[]>();
  /** The operations in their order. */
  readonly actions: string[] = [];
  /** Called before each operation; a result is the answer. */
  disturb: (action: string) => Answer | undefined = () => undefined;
  #puts = 0;
  http!: HttpRecorder;

  private constructor(wantsTokens: boolean) {
    this.#wantsTokens = wantsTokens;
  }

  static async start({ wantsTokens = false }: { wantsTokens?: boolean } = {}): Promise<CloudWatch> {
    const made = new CloudWatch(wantsTokens);
    made.http = await HttpRecorder.start((asked) => made.#answer(asked));
    return made;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.http.port}`;
  }

  eventsOf(stream: string): LogEvent[] {
    return this.streams.get(stream) ?? [];
  }

  async until(isThere: () => boolean): Promise<void> {
    await this.http.until(isThere);
  }

  #answer(asked: Asked): Answer {
    const action = String(asked.headers['x-amz-target']).replace('Logs_20140328.', '');
    this.actions.push(action);
    if (!isSigned(asked)) return refusal('InvalidSignatureException', 'the signature does not match');
    const disturbed = this.disturb(action);
    if (disturbed !== undefined) return disturbed;
    const input = JSON.parse(asked.text) as Input;
    switch (action) {
      case 'CreateLogGroup':
        return this.#createGroup(input);
      case 'CreateLogStream':
        return this.#createStream(input);
      case 'PutLogEvents':
        return this.#put(input);
      default:
        return refusal('UnknownOperationException', action);
    }
  }

  #createGroup({ logGroupName }: Input): Answer {
    if (this.groups.has(logGroupName)) return refusal('ResourceAlreadyExistsException', 'the group is there');
    this.groups.add(logGroupName);
    return { status: 200, body: '' };
  }

  #createStream({ logGroupName, logStreamName }: Input): Answer {
    if (!this.groups.has(logGroupName)) return refusal('ResourceNotFoundException', 'there is no such group');
    if (this.streams.has(logStreamName)) return refusal('ResourceAlreadyExistsException', 'the stream is there');
    this.streams.set(logStreamName, []);
    return { status: 200, body: '' };
  }

  #put({ logStreamName, sequenceToken, logEvents }: Input): Answer {
    const stream = this.streams.get(logStreamName);
    if (stream === undefined) return refusal('ResourceNotFoundException', 'there is no such stream');
    const expected = this.#puts === 0 ? undefined : `token-${this.#puts}`;
    if (this.#wantsTokens && sequenceToken !== expected) {
      const message = `The given sequenceToken is invalid. The next expected sequenceToken is: ${expected ?? 'null'}`;
      return refusal('InvalidSequenceTokenException', message, { expectedSequenceToken: expected ?? null });
    }
    const times = logEvents.map(({ timestamp }) => timestamp);
    if (times.some((time, at) => time < (times[at - 1] ?? 0)))
      return refusal('InvalidParameterException', 'not in order');
    stream.push(...logEvents);
    this.#puts += 1;
    return { status: 200, body: JSON.stringify(this.#wantsTokens ? { nextSequenceToken: `token-${this.#puts}` } : {}) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.http[Symbol.asyncDispose]();
  }
}

export function refusal(code: string, message: string, more: object = {}): Answer {
  return { status: 400, body: JSON.stringify({ __type: code, message, ...more }) };
}

/** Recalculates the signature (version 4) over the headers that it names. */
function isSigned({ headers, url, method, body }: Asked): boolean {
  const scheme =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/logs\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)$/;
  const [, key, day = '', region = '', names = '', signature] = scheme.exec(headers.authorization ?? '') ?? [];
  if (key !== KEY_ID || !names.includes('host')) return false;
  const lines = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = [method, url, '', lines.join(''), names, sha256(body)].join('\n');
  const scope = `${day}/${region}/logs/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n');
  let signing = Buffer.from(`AWS4${SECRET}`);
  for (const part of [day, region, 'logs', 'aws4_request']) signing = hmac(signing, part);
  return hmac(signing, toSign).toString('hex') === signature;
}

function sha256(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: Buffer, text: string): Buffer<ArrayBuffer> {
  return createHmac('sha256', key).update(text).digest();
}

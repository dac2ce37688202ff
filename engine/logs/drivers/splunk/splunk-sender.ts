import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

import { booleanOption } from '../../boolean-option.ts';
import type { Line } from '../../delivery/line.ts';
import type { Sender, SenderContext } from '../../delivery/sender.ts';
import type { LogOptions } from '../../driver.ts';
import { extraAttributes } from '../../log-attributes.ts';
import { HttpReceiver, type HttpAnswer } from '../../receivers/http-receiver.ts';
import { tlsFiles } from '../../receivers/tls.ts';
import { tagOf } from '../../tag.ts';
import { collectorUrl, gzipLevel } from './splunk-options.ts';

const LIMITS = { lines: 1000, bytes: 512 * 1024 };
const PAUSE_MS = 1000;
/** Codes of the collector for an event that is invalid by itself. */
const BAD_EVENT = [6, 12, 13];

const compressed = promisify(gzip);

/** Posts batches, each of which is answered. */
export class SplunkSender implements Sender {
  readonly limits = LIMITS;
  readonly pauseMs = PAUSE_MS;
  readonly recalls = false;
  readonly #context: SenderContext;
  readonly #event: (line: Line) => string | undefined;
  readonly #url: string;
  readonly #receiver: HttpReceiver;
  #isVerified: boolean;

  constructor(context: SenderContext) {
    const { options } = context;
    this.#context = context;
    this.#event = eventsOf(context);
    this.#url = collectorUrl(options);
    this.#receiver = new HttpReceiver({
      ...tlsFiles({ ca: options['splunk-capath'] ?? '' }),
      rejectUnauthorized: !booleanOption(options['splunk-insecureskipverify']),
      ...(options['splunk-caname'] !== undefined && { servername: options['splunk-caname'] }),
    });
    this.#isVerified = !booleanOption(options['splunk-verify-connection'] ?? 'true');
  }

  async send(lines: readonly Line[]): Promise<void> {
    if (!this.#isVerified) await this.#verify();
    await this.#post(lines.flatMap((line) => this.#event(line) ?? []));
  }

  async #verify(): Promise<void> {
    const answer = await this.#receiver.ask({ method: 'OPTIONS', url: this.#url });
    if (answer.status !== 200) throw new Error(`splunk: failed to verify connection - ${formatAnswer(answer)}`);
    this.#isVerified = true;
  }

  /** A batch with an invalid event is sent in halves, until only that event is left out. */
  async #post(events: readonly string[]): Promise<void> {
    if (events.length === 0) return;
    const answer = await this.#ask(events);
    if (answer.status === 200) return;
    if (!isForTheEvents(answer)) throw new Error(`splunk: failed to send event - ${formatAnswer(answer)}`);
    if (events.length === 1) return this.#context.refused(1, `splunk refuses it: ${formatAnswer(answer)}`);
    const middle = events.length >> 1;
    await this.#post(events.slice(0, middle));
    await this.#post(events.slice(middle));
  }

  async #ask(events: readonly string[]): Promise<HttpAnswer> {
    const { options } = this.#context;
    const isCompressed = booleanOption(options['splunk-gzip']);
    const body = Buffer.from(events.join(''));
    return await this.#receiver.ask({
      method: 'POST',
      url: this.#url,
      headers: {
        authorization: `Splunk ${options['splunk-token']}`,
        ...(isCompressed && { 'content-encoding': 'gzip' }),
        ...(booleanOption(options['splunk-index-acknowledgment']) && { 'x-splunk-request-channel': randomUUID() }),
      },
      body: isCompressed ? await compressed(body, { level: gzipLevel(options) }) : body,
    });
  }

  async end(): Promise<void> {
    // Each batch was answered.
  }

  [Symbol.dispose](): void {
    this.#receiver[Symbol.dispose]();
  }
}

function isForTheEvents({ status, text }: HttpAnswer): boolean {
  if (status === 413) return true;
  if (status !== 400) return false;
  try {
    return BAD_EVENT.includes((JSON.parse(text) as { code: number }).code);
  } catch {
    return false; // the message of a proxy
  }
}

function formatAnswer({ status, text }: HttpAnswer): string {
  return `${status} ${STATUS_CODES[status] ?? ''} - ${text.slice(0, 1024)}`;
}

/** The JSON text of a line's event; undefined for an event that the collector does not accept. */
function eventsOf({ container, options }: SenderContext): (line: Line) => string | undefined {
  const body = bodiesOf(options, options['tag'] === '' ? '' : tagOf(container, '{{.ID}}'), extraAttributes(container));
  const names = {
    source: options['splunk-source'],
    sourcetype: options['splunk-sourcetype'],
    index: options['splunk-index'],
  };
  const host = hostname();
  const rest = JSON.stringify({ host, ...Object.fromEntries(Object.entries(names).filter(([, value]) => value)) });
  return (line) => {
    const event = body(line);
    if (event === undefined) return undefined;
    const seconds = (Number(line.time.epochNanoseconds) / 1e9).toFixed(6);
    return `{"event":${event},"time":"${seconds}",${rest.slice(1)}`;
  };
}

function bodiesOf(
  options: LogOptions,
  tag: string,
  attributes: Record<string, string>,
): (line: Line) => string | undefined {
  const { 'splunk-format': format = 'inline' } = options;
  if (format === 'raw') {
    const words = Object.entries(attributes).map(([key, value]) => `${key}=${value} `);
    const prefix = (tag === '' ? '' : `${tag} `) + words.join('');
    return ({ string }) => (string.trim() === '' ? undefined : JSON.stringify(prefix + string));
  }
  const about = { ...(tag !== '' && { tag }), ...(Object.keys(attributes).length > 0 && { attrs: attributes }) };
  return ({ string, source }) => {
    const line = format === 'json' && isJson(string) ? string : JSON.stringify(string);
    return `{"line":${line},${JSON.stringify({ source, ...about }).slice(1)}`;
  };
}

/** Such a line is sent unchanged: numbers keep all of their digits. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

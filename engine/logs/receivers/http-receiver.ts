import type { SecureContextOptions } from 'node:tls';

import type { EnvHttpProxyAgent } from 'undici';

import { parseBoundedJson } from '../../lib/bounded-json.ts';
import { readWhole } from '../../lib/bytes/read-whole.ts';
import { systemClock } from '../../lib/clock.ts';

type Security = SecureContextOptions & { rejectUnauthorized?: boolean; servername?: string };

export type HttpAnswer = Readonly<{ status: number; text: string }>;

const ANSWER_TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 64 * 1024;

type Question = Readonly<{
  method: 'GET' | 'OPTIONS' | 'POST' | 'PUT';
  url: string | URL;
  headers?: Record<string, string>;
  body?: Buffer | string;
}>;

/** Requests to one receiver, one at a time, also through the proxy that the daemon's environment names. */
export class HttpReceiver implements Disposable {
  readonly #security: Security;
  #agent: EnvHttpProxyAgent | undefined;
  readonly #ended = new AbortController();
  readonly #timeoutMs: number;

  constructor(security: Security = {}, timeoutMs = ANSWER_TIMEOUT_MS) {
    this.#security = security;
    this.#timeoutMs = timeoutMs;
  }

  /** The text of an answer of more than 64 KB is left out: its status is what counts. Throws for a receiver that is silent or slow. */
  async ask({ url, ...options }: Question): Promise<HttpAnswer> {
    const { host } = new URL(url);
    const undici = await import('undici'); // takes 12 MB, which most daemons never need
    this.#ended.signal.throwIfAborted(); // otherwise nothing would end the agent
    this.#agent ??= new undici.EnvHttpProxyAgent({ connect: this.#security, requestTls: this.#security });
    const late = new AbortController();
    using _timer = systemClock.after(this.#timeoutMs, () => {
      late.abort(new Error(`${host} has not answered within ${this.#timeoutMs / 1000} s`));
    });
    const signal = AbortSignal.any([this.#ended.signal, late.signal]);
    const { statusCode, body } = await undici.request(url, { ...options, dispatcher: this.#agent, signal });
    const read = await readWhole(body, MAX_ANSWER_BYTES);
    if (read !== undefined) return { status: statusCode, text: read.toString() };
    body.on('error', () => undefined).destroy();
    return { status: statusCode, text: '' };
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    this.#agent?.destroy().catch(() => undefined);
  }
}

/** Parses the text of an answer. Throws for one that is no JSON, or too large. */
export function parseAnswer(url: string | URL, { text }: HttpAnswer): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    const said = `${new URL(url).host} answers with something else than JSON of at most ${MAX_ANSWER_BYTES} bytes`;
    throw new Error(said, { cause: error });
  }
}

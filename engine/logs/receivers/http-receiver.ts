import type { SecureContextOptions } from 'node:tls';

import { EnvHttpProxyAgent, request } from 'undici';

type Security = SecureContextOptions & { rejectUnauthorized?: boolean; servername?: string };

export type HttpAnswer = Readonly<{ status: number; text: string }>;

const TIMEOUT_MS = 30_000;
/** The part of an answer that is read. */
const MAX_ANSWER_LENGTH = 64 * 1024;

type Question = Readonly<{
  method: 'GET' | 'OPTIONS' | 'POST' | 'PUT';
  url: string | URL;
  headers?: Record<string, string>;
  body?: Buffer | string;
}>;

/** Requests to one receiver, one at a time, also through the proxy that the daemon's environment names. */
export class HttpReceiver implements Disposable {
  readonly #agent: EnvHttpProxyAgent;
  readonly #ended = new AbortController();

  constructor(security: Security = {}) {
    this.#agent = new EnvHttpProxyAgent({ connect: security, requestTls: security });
  }

  async ask({ url, ...options }: Question): Promise<HttpAnswer> {
    const signal = AbortSignal.any([this.#ended.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const { statusCode, body } = await request(url, { ...options, dispatcher: this.#agent, signal });
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length <= MAX_ANSWER_LENGTH) chunks.push(chunk);
    }
    return { status: statusCode, text: Buffer.concat(chunks).toString() };
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    this.#agent.destroy().catch(() => undefined);
  }
}

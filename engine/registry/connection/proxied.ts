import { Readable } from 'node:stream';

import type { ProxyAgent } from 'undici';

import { CONNECT_MS, SILENCE_MS, type Answer, type Sent, type Tls } from './direct.ts';

/** Connections through a proxy of the environment, kept open until it is disposed; on undici, which knows all kinds of proxies. */
export class ProxiedConnections implements Disposable {
  readonly #proxy: URL;
  readonly #tls: Tls;
  #agent: ProxyAgent | undefined;

  constructor(proxy: URL, tls: Tls) {
    this.#proxy = proxy;
    this.#tls = tls;
  }

  /** As without a proxy; the proxy gets the name and the password of its address. */
  async request(url: URL, { method, headers, body, signal }: Sent): Promise<Answer> {
    const undici = await import('undici'); // takes 12 MB, which most daemons never need
    this.#agent ??= new undici.ProxyAgent({
      uri: this.#proxy.href,
      requestTls: { ...this.#tls, timeout: CONNECT_MS },
      connectTimeout: CONNECT_MS,
    });
    const {
      statusCode,
      statusText,
      headers: told,
      body: content,
    } = await undici.request(url, {
      method,
      headers,
      body: body === undefined || Buffer.isBuffer(body) ? body : Readable.from(copies(body), { objectMode: false }),
      signal,
      dispatcher: this.#agent,
      headersTimeout: SILENCE_MS,
      bodyTimeout: SILENCE_MS,
    });
    return { statusCode, statusText, headers: textsOf(told), body: content };
  }

  [Symbol.dispose](): void {
    this.#agent?.destroy().catch(() => undefined);
  }
}

/** undici keeps pieces that it has not sent yet. */
async function* copies(body: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const piece of body) yield Buffer.from(piece);
}

function textsOf(headers: Readonly<Record<string, string | string[] | undefined>>): Answer['headers'] {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? []].flat().join(', ')]));
}

import type * as Undici from 'undici';

import { proxyFor } from '../../lib/proxies.ts';
import { reasonOf, RegistryError, Unreachable } from '../errors.ts';
import type { Certificates } from './certificates.ts';

export type Sent = {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  headers?: Record<string, string>;
  body?: Buffer | AsyncIterable<Uint8Array>;
  signal: AbortSignal;
};
export type Answer = Undici.Dispatcher.ResponseData;

const SILENCE_MS = 60_000;
const CONNECT_MS = 20_000;
const REDIRECTIONS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const LIMIT = 10;

/** Connections to one registry and to the hosts that it redirects to, kept open until it is disposed. */
export class Transport implements Disposable {
  readonly #undici: typeof Undici;
  readonly #tls: { ca?: string[]; cert?: string; key?: string; rejectUnauthorized: boolean };
  readonly #host: string;
  readonly #dispatchers = new Map<string, Undici.Dispatcher>();

  private constructor(undici: typeof Undici, host: string, certificates: Certificates, isVerified: boolean) {
    this.#undici = undici;
    this.#host = host;
    this.#tls = { ...certificates, rejectUnauthorized: isVerified };
  }

  static async open(host: string, certificates: Certificates, isVerified: boolean): Promise<Transport> {
    // Takes 12 MB, which most daemons never need.
    return new Transport(await import('undici'), host, certificates, isVerified);
  }

  /**
   * Sends a request and follows redirections; its authorization goes to no other origin. Throws `Unreachable` when
   * there is no answer. Its message has no secrets: of the address only scheme, host and path.
   */
  async send(first: URL, sent: Sent): Promise<Answer> {
    let url = first;
    let { method, body, headers = {} } = sent;
    for (let redirections = 0; ; redirections += 1) {
      const answer = await this.#once(url, { method, body, headers, signal: sent.signal });
      const location = REDIRECTIONS.has(answer.statusCode) ? answer.headers.location : undefined;
      if (location === undefined || body !== undefined) return answer;
      await answer.body.dump();
      if (redirections === LIMIT)
        throw new RegistryError(`${withoutQuery(first)} is redirected more than ${LIMIT} times`);
      const next = nextUrl(url, String(location));
      if (next.origin !== url.origin) headers = withoutAuthorization(headers);
      if (answer.statusCode === 303 && method !== 'HEAD') method = 'GET';
      url = next;
    }
  }

  [Symbol.dispose](): void {
    for (const dispatcher of this.#dispatchers.values()) dispatcher.destroy().catch(() => undefined);
    this.#dispatchers.clear();
  }

  async #once(url: URL, { method, body, headers, signal }: Sent): Promise<Answer> {
    try {
      return await this.#undici.request(url, {
        method,
        headers,
        body: body as Buffer | undefined,
        signal,
        dispatcher: this.#dispatcher(url),
        headersTimeout: SILENCE_MS,
        bodyTimeout: SILENCE_MS,
      });
    } catch (error) {
      signal.throwIfAborted();
      const verb = `${method[0]}${method.slice(1).toLowerCase()}`;
      throw new Unreachable(`${verb} "${withoutQuery(url)}": ${reasonOf(error, url)}`, { cause: error });
    }
  }

  #dispatcher(url: URL): Undici.Dispatcher {
    // The registry's certificates and exceptions do not apply to hosts that it redirects to.
    const isRegistry = url.host === this.#host;
    const proxy = proxyFor(url);
    const key = `${isRegistry} ${proxy?.href}`;
    const known = this.#dispatchers.get(key);
    if (known !== undefined) return known;
    const tls = { ...(isRegistry ? this.#tls : { rejectUnauthorized: true }), timeout: CONNECT_MS };
    const { Agent, ProxyAgent } = this.#undici;
    const made =
      proxy === undefined
        ? new Agent({ connect: tls })
        : new ProxyAgent({ uri: proxy.href, requestTls: tls, connectTimeout: CONNECT_MS });
    this.#dispatchers.set(key, made);
    return made;
  }
}

function nextUrl(before: URL, location: string): URL {
  const url = URL.canParse(location, before) ? new URL(location, before) : undefined;
  if (url !== undefined && ['http:', 'https:'].includes(url.protocol)) return url;
  throw new RegistryError(`${withoutQuery(before)} is redirected to an unsupported address`);
}

function withoutAuthorization(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'authorization'));
}

/** Queries carry account names and signatures. */
export function withoutQuery(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

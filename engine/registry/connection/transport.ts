import { proxyFor } from '../../lib/proxies.ts';
import { reasonOf, RegistryError, Unreachable } from '../errors.ts';
import type { Certificates } from './certificates.ts';
import { DirectConnections, type Answer, type Sent, type Tls } from './direct.ts';
import { ProxiedConnections } from './proxied.ts';
import { discard } from './read-body.ts';

const REDIRECTIONS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const LIMIT = 10;

/** Connections to one registry and to the hosts that it redirects to, kept open until it is disposed. */
export class Transport implements Disposable {
  readonly #tls: Tls;
  readonly #host: string;
  readonly #connections = new Map<string, DirectConnections | ProxiedConnections>();

  constructor(host: string, certificates: Certificates, isVerified: boolean) {
    this.#host = host;
    this.#tls = { ...certificates, rejectUnauthorized: isVerified };
  }

  /**
   * Sends a request and follows redirections; its authorization goes to no other origin. Throws `Unreachable` when
   * there is no answer. Its message has no secrets: of the address only scheme, host and path.
   */
  async send(first: URL, sent: Sent): Promise<Answer> {
    let url = first;
    let { method, headers = {} } = sent;
    for (let redirections = 0; ; redirections += 1) {
      const answer = await this.#once(url, { ...sent, method, headers });
      const location = REDIRECTIONS.has(answer.statusCode) ? answer.headers.location : undefined;
      if (location === undefined || sent.body !== undefined) return answer;
      await discard(answer);
      if (redirections === LIMIT)
        throw new RegistryError(`${withoutQuery(first)} is redirected more than ${LIMIT} times`);
      const next = nextUrl(url, location);
      if (next.origin !== url.origin) headers = withoutAuthorization(headers);
      if (answer.statusCode === 303 && method !== 'HEAD') method = 'GET';
      url = next;
    }
  }

  [Symbol.dispose](): void {
    for (const connections of this.#connections.values()) connections[Symbol.dispose]();
    this.#connections.clear();
  }

  async #once(url: URL, sent: Sent): Promise<Answer> {
    try {
      return await this.#connectionsTo(url).request(url, sent);
    } catch (error) {
      sent.signal.throwIfAborted();
      const verb = `${sent.method[0]}${sent.method.slice(1).toLowerCase()}`;
      throw new Unreachable(`${verb} "${withoutQuery(url)}": ${reasonOf(error, url)}`, { cause: error });
    }
  }

  #connectionsTo(url: URL): DirectConnections | ProxiedConnections {
    // The registry's certificates and exceptions do not apply to hosts that it redirects to.
    const isRegistry = url.host === this.#host;
    const proxy = proxyFor(url);
    return this.#connections.getOrInsertComputed(`${isRegistry} ${proxy?.href}`, () => {
      const tls = isRegistry ? this.#tls : { rejectUnauthorized: true };
      return proxy === undefined ? new DirectConnections(tls) : new ProxiedConnections(proxy, tls);
    });
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
function withoutQuery(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

import type { IncomingMessage, RequestListener } from 'node:http';

import type { RouteOptions } from 'fastify';

import type { Headers } from './headers.ts';
import type { UnderWay } from './listening/under-way.ts';
import { isSupported, splitVersion, type ApiVersions } from './versions/api-version.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The answer of a `GET /…/:ref/…` without a query, as finished JSON text; undefined if the handler is needed. */
    atOnce?: (ref: string) => string | undefined;
  }
}

type Shortcut = Readonly<{ before: string; after: string; find: (ref: string) => string | undefined }>;

/**
 * Answers requests that need none of the stages before their handler, above all repeated inspects: without the router,
 * its hooks and the versions' steps an answer takes half the time, and a fresh daemon has less to compile. Everything
 * else goes the usual way.
 */
export class AtOnce {
  readonly #shortcuts: Shortcut[] = [];
  readonly #versions: ApiVersions;
  readonly #headers: () => Headers;

  constructor(versions: ApiVersions, headers: () => Headers) {
    this.#versions = versions;
    this.#headers = headers;
  }

  /** Registers a route with such an answer, and without steps for older clients. */
  add({ url, config }: RouteOptions): void {
    if (config?.atOnce === undefined || config.steps !== undefined) return;
    const [before, after, ...rest] = url.split(':ref');
    if (before === undefined || after === undefined || rest.length > 0) throw new Error(`${url} has no single :ref`);
    this.#shortcuts.push({ before, after, find: config.atOnce });
  }

  /** The same listener with the shortcuts before it. Not for sockets whose clients are counted or kept out. */
  before(listener: RequestListener, underWay: UnderWay): RequestListener {
    return (request, response) => {
      const text = isPlain(request) ? this.#textOf(request.url ?? '') : undefined;
      if (text === undefined) return listener(request, response);
      underWay.add(response);
      response.writeHead(200, {
        ...this.#headers(),
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      });
      return void response.end(text);
    };
  }

  #textOf(url: string): string | undefined {
    if (url.includes('?') || url.includes('%')) return undefined;
    const { written, path } = splitVersion(url);
    if (written !== undefined && !isSupported(written, this.#versions)) return undefined;
    const shortcut = this.#shortcuts.find(({ before, after }) => path.startsWith(before) && path.endsWith(after));
    if (shortcut === undefined) return undefined;
    const ref = path.slice(shortcut.before.length, -shortcut.after.length);
    if (ref === '' || ref.includes('/')) return undefined;
    try {
      return shortcut.find(ref);
    } catch {
      return undefined; // the handler meets the same error, and answers with it
    }
  }
}

/** A plain request: without a body, an origin or an upgrade. */
function isPlain({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    headers.host !== undefined &&
    headers.origin === undefined &&
    (headers['content-length'] ?? '0') === '0' &&
    headers['transfer-encoding'] === undefined &&
    headers.expect === undefined &&
    headers.upgrade === undefined
  );
}

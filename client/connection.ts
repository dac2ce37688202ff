import { once } from 'node:events';
import type http from 'node:http';
import type https from 'node:https';
import type { Duplex, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';

import type { Target } from './target.ts';

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export type RequestOptions = {
  query?: Query;
  /** A Buffer or a stream is sent as a tar archive, anything else as JSON. */
  body?: unknown;
  headers?: http.OutgoingHttpHeaders;
  signal?: AbortSignal;
  /** The version of the API, for an endpoint that came later than the connection's version. */
  version?: string;
};

export type Answer<T = unknown> = {
  status: number;
  headers: http.IncomingHttpHeaders;
  /** The JSON body, the text if it is not one JSON value, or undefined without a body. */
  body: T;
  raw: Buffer;
};

/** A refusal by the engine, with its message. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
  }
}

/** The engine could not be reached, or the connection broke; `code` is the system's. */
export class ConnectionError extends Error {
  readonly code: string;

  constructor(cause: Error & { code: string }) {
    super(cause.message, { cause });
    this.name = 'ConnectionError';
    this.code = cause.code;
  }
}

/** Requests to one engine, over its Unix socket, TCP or TLS, with connections kept open between them. */
export class Connection implements Disposable {
  readonly #base: http.RequestOptions;
  readonly #transport: typeof http | typeof https;
  readonly #agent: http.Agent;
  readonly #prefix: string;

  constructor(target: Target, prefix = '/v1.24') {
    this.#prefix = prefix;
    const tls = target.kind === 'tcp' ? target.tls : undefined;
    // An `import` of node:http loads everything that it exports, undici included, which takes 40 ms: too long for a
    // command line.
    this.#transport = process.getBuiltinModule(tls === undefined ? 'node:http' : 'node:https');
    this.#agent = new this.#transport.Agent({ keepAlive: true, maxSockets: 256 });
    this.#base =
      target.kind === 'unix'
        ? { socketPath: target.socketPath }
        : {
            host: target.host,
            port: target.port,
            ...(tls && { ca: tls.ca, cert: tls.cert, key: tls.key, rejectUnauthorized: tls.verify }),
          };
  }

  /** Sends a request and reads the whole answer, whatever its status. */
  async request<T = unknown>(method: string, path: string, options: RequestOptions = {}): Promise<Answer<T>> {
    const response = await this.open(method, path, options);
    const raw = await buffer(response);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: parse(response.headers['content-type'], raw) as T,
      raw,
    };
  }

  /** Sends a request whose answer must be a success, and returns its body. Throws `ApiError`. */
  async call<T = void>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    const answer = await this.request<T>(method, path, options);
    if (answer.status >= 400) throw new ApiError(answer.status, messageOf(answer.raw));
    return answer.body;
  }

  /** Sends a request and returns the answer's stream as soon as its head has arrived. Throws `ApiError`. */
  async stream(method: string, path: string, options: RequestOptions = {}): Promise<Readable> {
    const response = await this.open(method, path, options);
    if ((response.statusCode ?? 0) >= 400)
      throw new ApiError(response.statusCode ?? 0, messageOf(await buffer(response)));
    return response;
  }

  /** Sends a request and returns the answer before its body is read. */
  async open(method: string, path: string, options: RequestOptions = {}): Promise<http.IncomingMessage> {
    const request = this.#send(method, path, options, this.#agent);
    const [response] = (await once(request, 'response').catch(rethrow)) as [http.IncomingMessage];
    // An engine that refuses a large body answers and closes the connection, so a failed write is not an error. A
    // truncated answer fails on its own.
    request.on('error', () => undefined);
    return response;
  }

  /** Takes a connection over, as attach and exec do; the socket carries both directions. Throws `ApiError`. */
  async hijack(
    path: string,
    options: RequestOptions = {},
  ): Promise<{ headers: http.IncomingHttpHeaders; socket: Duplex }> {
    const upgrade = { ...options, headers: { ...options.headers, Connection: 'Upgrade', Upgrade: 'tcp' } };
    const request = this.#send('POST', path, upgrade, undefined);
    const outcome = Promise.withResolvers<{ headers: http.IncomingHttpHeaders; socket: Duplex }>();
    request.once('upgrade', (response, socket, head) => {
      if (head.length > 0) socket.unshift(head);
      outcome.resolve({ headers: response.headers, socket });
    });
    request.once('response', (response) => {
      buffer(response).then(
        (raw) => outcome.reject(new ApiError(response.statusCode ?? 0, messageOf(raw))),
        outcome.reject,
      );
    });
    request.once('error', outcome.reject);
    return await outcome.promise.catch(rethrow);
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  #send(method: string, path: string, options: RequestOptions, agent: http.Agent | undefined): http.ClientRequest {
    const payload = encode(options.body);
    const request = this.#transport.request({
      ...this.#base,
      ...(agent && { agent }),
      method,
      path: (options.version === undefined ? this.#prefix : `/v${options.version}`) + path + queryText(options.query),
      headers: { ...payload.headers, ...options.headers },
      signal: options.signal,
    });
    if (isStream(payload.content)) {
      payload.content.once('error', (error) => request.destroy(new BodyError(error)));
      payload.content.pipe(request);
    } else {
      request.end(payload.content);
    }
    return request;
  }
}

/** The request's body could not be read. */
class BodyError extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/**
 * Wraps an error of the socket as the connection's; an error of the body, or of the caller's signal, stays unchanged.
 */
function rethrow(error: unknown): never {
  if (error instanceof BodyError) throw error.cause;
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string') || error.code === 'ABORT_ERR')
    throw error;
  throw error instanceof ApiError ? error : new ConnectionError(error as Error & { code: string });
}

function queryText(query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined || value === false) continue;
    for (const item of Array.isArray(value) ? value : [value])
      parameters.append(key, item === true ? '1' : String(item));
  }
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

function encode(body: unknown): { content: Buffer | Readable | undefined; headers: http.OutgoingHttpHeaders } {
  if (body === undefined) return { content: undefined, headers: { 'Content-Length': 0 } };
  if (Buffer.isBuffer(body)) {
    return { content: body, headers: { 'Content-Type': 'application/x-tar', 'Content-Length': body.length } };
  }
  if (isStream(body)) return { content: body, headers: { 'Content-Type': 'application/x-tar' } };
  const content = Buffer.from(JSON.stringify(body));
  return { content, headers: { 'Content-Type': 'application/json', 'Content-Length': content.length } };
}

function isStream(value: unknown): value is Readable {
  return typeof value === 'object' && value !== null && 'pipe' in value && typeof value.pipe === 'function';
}

function parse(contentType: string | undefined, raw: Buffer): unknown {
  if (raw.length === 0) return undefined;
  if (!contentType?.startsWith('application/json')) return raw.toString();
  try {
    return JSON.parse(raw.toString());
  } catch (error) {
    // Progress answers are several JSON values, one after another.
    if (error instanceof SyntaxError) return raw.toString();
    throw error;
  }
}

function messageOf(raw: Buffer): string {
  const body = parse('application/json', raw);
  if (typeof body === 'object' && body !== null && 'message' in body) return String(body.message);
  return raw.toString().trim();
}

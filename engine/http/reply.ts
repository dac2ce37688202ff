import type { ServerResponse } from 'node:http';

type ReplyHeaders = Record<string, string | number | readonly string[]>;

/** The answer to a request, written by the server when the handler has ended, unless the handler took it over. */
export class Reply<Answer = unknown> {
  readonly raw: ServerResponse;
  statusCode = 200;
  /** Undefined: no body. */
  payload: unknown;
  /** Whether a handler has chosen the payload, which may be none. */
  isSent = false;
  /** Whether a handler writes the response, or the connection, by itself. */
  isTakenOver = false;
  readonly #headers: ReplyHeaders = {};

  constructor(raw: ServerResponse) {
    this.raw = raw;
  }

  code(status: number): this {
    this.statusCode = status;
    return this;
  }

  type(contentType: string): this {
    return this.headers({ 'content-type': contentType });
  }

  /** Names count in any case. */
  headers(headers: Readonly<ReplyHeaders>): this {
    for (const [name, value] of Object.entries(headers)) this.#headers[name.toLowerCase()] = value;
    return this;
  }

  getHeaders(): Readonly<ReplyHeaders> {
    return this.#headers;
  }

  send(payload?: Answer): this {
    this.payload = payload;
    this.isSent = true;
    return this;
  }

  /** From now on the caller writes the response. */
  takeOver(): void {
    this.isTakenOver = true;
  }

  /** Writes the answer. Without a payload the body is empty. */
  write(): void {
    const { raw, statusCode: status } = this;
    const body = this.body();
    const isEmpty = status === 204 || status === 304;
    if (status === 204) delete this.#headers['content-type'];
    if (!isEmpty && (raw.req.method !== 'HEAD' || body !== undefined)) {
      this.#headers['content-length'] = body === undefined ? 0 : Buffer.byteLength(body);
    }
    raw.writeHead(status, this.#headers as Record<string, string>);
    raw.end(isEmpty ? undefined : body);
  }

  /** The payload: text and bytes as they are, anything else as JSON. Names its type if no handler did. */
  body(): string | Uint8Array | undefined {
    const { payload } = this;
    if (payload === undefined || payload === null || payload instanceof Uint8Array) return payload ?? undefined;
    if (typeof payload === 'string') {
      this.#headers['content-type'] ??= 'text/plain; charset=utf-8';
      return payload;
    }
    // Exactly this type, or docker's clients show an error's JSON instead of its message.
    this.#headers['content-type'] ??= 'application/json';
    return JSON.stringify(payload);
  }
}

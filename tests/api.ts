import { once } from 'node:events';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';

export type Answer<T = unknown> = {
  status: number;
  headers: http.IncomingHttpHeaders;
  /** The JSON body, or the text where it is not JSON, or undefined where there is none. */
  body: T;
  raw: Buffer;
};

export type RequestOptions = {
  body?: unknown;
  headers?: http.OutgoingHttpHeaders;
  signal?: AbortSignal;
};

/** Raw requests to an engine on a Unix socket: the same for ours and for dockerd, so that both can be compared. */
export class Api {
  readonly socketPath: string;
  readonly prefix: string;
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

  constructor(socketPath: string, prefix = '/v1.24') {
    this.socketPath = socketPath;
    this.prefix = prefix;
  }

  async get<T = unknown>(path: string, options?: RequestOptions): Promise<Answer<T>> {
    return await this.request<T>('GET', path, options);
  }

  async post<T = unknown>(path: string, body?: unknown, options?: RequestOptions): Promise<Answer<T>> {
    return await this.request<T>('POST', path, { ...options, body });
  }

  async delete<T = unknown>(path: string, options?: RequestOptions): Promise<Answer<T>> {
    return await this.request<T>('DELETE', path, options);
  }

  /** Sends a request and reads its whole answer. A Buffer goes out as it is, anything else as JSON. */
  async request<T = unknown>(method: string, path: string, options: RequestOptions = {}): Promise<Answer<T>> {
    const response = await this.open(method, path, options);
    const raw = await buffer(response);
    return { status: response.statusCode ?? 0, headers: response.headers, body: parse(response, raw) as T, raw };
  }

  /** Sends a request and returns the answer as soon as its head is there. */
  async open(method: string, path: string, options: RequestOptions = {}): Promise<http.IncomingMessage> {
    const payload = encode(options.body);
    const request = http.request({
      socketPath: this.socketPath,
      agent: this.#agent,
      method,
      path: this.prefix + path,
      headers: { ...payload.headers, ...options.headers },
      signal: options.signal,
    });
    request.end(payload.bytes);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    return response;
  }

  /** A hijacked connection, as `docker attach` opens it. */
  async hijack(
    path: string,
    body?: unknown,
  ): Promise<{ status: number; headers: http.IncomingHttpHeaders; socket: Duplex }> {
    const payload = encode(body);
    const request = http.request({
      socketPath: this.socketPath,
      method: 'POST',
      path: this.prefix + path,
      headers: { ...payload.headers, Connection: 'Upgrade', Upgrade: 'tcp' },
    });
    request.end(payload.bytes);
    const outcome = Promise.withResolvers<{ status: number; headers: http.IncomingHttpHeaders; socket: Duplex }>();
    request.once('upgrade', (response, socket, head) => {
      if (head.length > 0) socket.unshift(head);
      outcome.resolve({ status: response.statusCode ?? 0, headers: response.headers, socket });
    });
    request.once('response', (response) => {
      buffer(response).then(
        (raw) => outcome.reject(new Error(`${path} answered ${response.statusCode}: ${raw.toString()}`)),
        outcome.reject,
      );
    });
    request.once('error', outcome.reject);
    return await outcome.promise;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Splits 8-byte framed output into its streams: 1 is stdout, 2 is stderr. */
export function unframe(bytes: Buffer): { stdout: string; stderr: string } {
  const parts = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  for (let offset = 0; offset < bytes.length;) {
    const size = bytes.readUInt32BE(offset + 4);
    parts[bytes[offset] === 2 ? 'stderr' : 'stdout'].push(bytes.subarray(offset + 8, offset + 8 + size));
    offset += 8 + size;
  }
  return { stdout: Buffer.concat(parts.stdout).toString(), stderr: Buffer.concat(parts.stderr).toString() };
}

function encode(body: unknown): { bytes: Buffer | undefined; headers: http.OutgoingHttpHeaders } {
  if (body === undefined) return { bytes: undefined, headers: { 'Content-Length': 0 } };
  if (Buffer.isBuffer(body)) {
    return { bytes: body, headers: { 'Content-Type': 'application/x-tar', 'Content-Length': body.length } };
  }
  const bytes = Buffer.from(JSON.stringify(body));
  return { bytes, headers: { 'Content-Type': 'application/json', 'Content-Length': bytes.length } };
}

function parse(response: http.IncomingMessage, raw: Buffer): unknown {
  if (raw.length === 0) return undefined;
  if (!response.headers['content-type']?.startsWith('application/json')) return raw.toString();
  try {
    return JSON.parse(raw.toString());
  } catch (error) {
    // Progress answers are several JSON objects, one after another.
    if (error instanceof SyntaxError) return raw.toString();
    throw error;
  }
}

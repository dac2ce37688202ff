import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

import { systemClock } from '../../lib/clock.ts';

/** How long a server may be silent, before its answer and within it. */
export const SILENCE_MS = 60_000;
export const CONNECT_MS = 20_000;
/** The time for the whole head of an answer, in silences: one that comes byte by byte is never silent. */
const HEAD_SILENCES = 2;
/** Lifetime of a connection without requests: shorter than the patience of most servers. */
const IDLE_TIMEOUT_MS = 4000;

export type Sent = {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  headers?: Record<string, string>;
  /** The pieces of a stream are valid until the next one is asked for. */
  body?: Buffer | AsyncIterable<Uint8Array>;
  signal: AbortSignal;
};

/** An answer; its body is to be read to its end or discarded (`read-body.ts`), because the connection is used again. */
export type Answer = Readonly<{
  statusCode: number;
  statusText: string;
  /** A header that came twice has its values joined. */
  headers: Readonly<Record<string, string | undefined>>;
  body: Readable;
}>;

export type Tls = Readonly<{ ca?: string[]; cert?: string; key?: string; rejectUnauthorized: boolean }>;

/**
 * Connections without a proxy, kept open until it is disposed: one to each host at a time for each request under way. On
 * node:http, because undici takes 12 MB.
 */
export class DirectConnections implements Disposable {
  readonly #plain = new http.Agent({ keepAlive: true, timeout: IDLE_TIMEOUT_MS });
  readonly #tls: Tls;
  readonly #silenceMs: number;
  #secure: https.Agent | undefined;

  constructor(tls: Tls, silenceMs = SILENCE_MS) {
    this.#tls = tls;
    this.#silenceMs = silenceMs;
  }

  /** Throws what the connection throws, and the signal's reason. Follows no redirections. */
  async request(url: URL, { method, headers = {}, body, signal }: Sent): Promise<Answer> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const request = this.#open(url, { method, headers, signal, timeout: this.#silenceMs });
    request.once('response', resolve).on('error', reject);
    watchSilence(request, this.#silenceMs);
    watchHead(request, HEAD_SILENCES * this.#silenceMs);
    // Not before the connection is made: an error of its handshake then comes with its code.
    onceConnected(request, () => {
      if (body === undefined || Buffer.isBuffer(body)) request.end(body);
      else write(body, request).catch((error: unknown) => request.destroy(error as Error));
    });
    const response = await promise;
    return {
      statusCode: response.statusCode ?? 0,
      statusText: response.statusMessage ?? '',
      headers: response.headers as Answer['headers'], // but for cookies, which nobody reads
      body: response,
    };
  }

  [Symbol.dispose](): void {
    this.#plain.destroy();
    this.#secure?.destroy();
  }

  #open(url: URL, options: RequestOptions): ClientRequest {
    if (url.protocol === 'http:') {
      return http.request(url, { ...options, agent: this.#plain });
    }
    this.#secure ??= new https.Agent({ ...this.#tls, keepAlive: true, timeout: IDLE_TIMEOUT_MS });
    return https.request(url, { ...options, agent: this.#secure });
  }
}

/** Ends when an answer comes before the end of the body: nobody reads the rest, and the connection goes with the answer. */
async function write(body: AsyncIterable<Uint8Array>, request: ClientRequest): Promise<void> {
  let isOver = false;
  let wake: (() => void) | undefined;
  const end = (): void => {
    isOver = true;
    wake?.();
  };
  request.once('response', (response) => {
    if (!request.writableEnded) response.once('close', () => request.destroy());
    end();
  });
  request.once('close', end);
  for await (const piece of body) {
    if (isOver) return;
    await new Promise<void>((resolve) => {
      wake = resolve;
      request.write(piece, () => resolve());
    });
    if (isOver) return;
  }
  request.end();
}

function onceConnected(request: ClientRequest, go: (socket: Socket) => void): void {
  request.once('socket', (socket: Socket) => {
    if (socket.connecting) socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => go(socket));
    else go(socket);
  });
}

/** Ends a request whose server says and takes nothing any more. Its timer begins anew with each byte in either direction. */
function watchSilence(request: ClientRequest, silenceMs: number): void {
  let answer: IncomingMessage | undefined;
  let isConnected = false;
  request.once('response', (response) => (answer = response));
  onceConnected(request, (socket) => {
    isConnected = true;
    socket.setTimeout(silenceMs);
  });
  request.once('socket', (socket: Socket) => {
    if (!isConnected) socket.setTimeout(CONNECT_MS);
    const silent = (): void => {
      if (!isConnected) {
        request.destroy(new Error('the connection was not made in time'));
        return;
      }
      const waitsForUs =
        answer === undefined ? !request.writableEnded && socket.writableLength === 0 : answer.readableLength > 0;
      if (waitsForUs) socket.setTimeout(silenceMs);
      else request.destroy(new Error(`the server was silent for ${silenceMs / 1000} seconds`));
    };
    socket.on('timeout', silent);
    request.once('close', () => socket.off('timeout', silent));
  });
}

/** Ends a request whose answer has no whole head in time after it was sent. */
function watchHead(request: ClientRequest, timeoutMs: number): void {
  let timer: Disposable | undefined;
  let isAnswered = false;
  const stop = (): void => {
    isAnswered = true;
    timer?.[Symbol.dispose]();
  };
  request.once('finish', () => {
    if (isAnswered) return; // an answer may come before the end of the body
    const late = new Error(`the server sent no whole head within ${timeoutMs / 1000} seconds`);
    timer = systemClock.after(timeoutMs, () => request.destroy(late));
  });
  request.once('response', stop).once('close', stop);
}

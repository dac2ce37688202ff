import type { IncomingHttpHeaders, IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { posix } from 'node:path';
import type { Duplex } from 'node:stream';

import { CanonicalResponse } from '../canonical-headers.ts';
import { ENDPOINTS } from '../description/endpoints.ts';

/** Requests that are followed by the client's stream, even without an upgrade; with or without a version. */
const TAKEN_OVER_UNASKED = new RegExp(
  `^/+(v[\\d.]+/+)?(${ENDPOINTS.filter(({ takesOver }) => takesOver === 'always')
    .map(({ path }) => path.slice(1).replaceAll(/\{\w+\}/g, '.+'))
    .join('|')})/*$`,
);
/** Upgrades that a stream follows; others, such as to HTTP/2, are an offer. */
const STREAMS = /^(tcp|websocket)$/i;
/** Makes the parser stop after the head, as for a CONNECT. */
const STOP = 2;
/** Limits of the bytes behind a refused stream: they are dropped, so that the client can read the answer. */
const [MAX_REST_BYTES, MAX_REST_MS] = [1024 * 1024, 5000];

/** Uses Node's undocumented parser, because only it knows where a request ends. */
type Accepted = Socket & { parser: { onIncoming: (request: Request, keepAlive: boolean) => number } };
type Request = IncomingMessage & { upgrade?: boolean };

const streams = new WeakMap<IncomingMessage, Duplex>();

/** The connection of a request, from the first byte behind it; undefined if it cannot be taken over. */
export function streamBehind(request: IncomingMessage): Duplex | undefined {
  return streams.get(request);
}

/**
 * Passes requests to the listener in a way that lets a route take over the connection.
 *
 * For an upgrade Node's parser reads only the head and the body: later bytes of the client are neither lost nor taken
 * for a second request. All upgrades go this way, also those that are then answered normally (Java's client asks for
 * HTTP/2 everywhere). A request without one, to a route that takes over the connection all the same, is read again as
 * an upgrade.
 *
 * As in Go a connection has one request at a time: the next one is read when the last one is answered. `watch` is given
 * the connections that nobody reads meanwhile.
 */
export function serveUpgrades(
  server: Server,
  accepted: 'connection' | 'secureConnection',
  listener: RequestListener,
  watch: (socket: Socket) => void,
): void {
  const early = new WeakSet<Request>();
  const unasked = new WeakSet<Request>();
  const askedNothing = new WeakMap<Socket, IncomingHttpHeaders>();
  const lastResponses = new WeakMap<Socket, ServerResponse>();
  const readOn = (socket: Socket): void => {
    socket.setTimeout(0); // the one for idle connections, of the last request
    server.emit(accepted, socket);
  };

  server.on(accepted, ({ parser }: Accepted) => {
    const accept = parser.onIncoming;
    parser.onIncoming = (request, keepAlive) => {
      if (isOpen(lastResponses.get(request.socket))) early.add(request);
      else if (!request.upgrade && isTakenOver(request)) unasked.add(request);
      else return accept(request, keepAlive);
      request.upgrade = true;
      return STOP;
    };
  });
  server.prependListener('request', (request, response) => lastResponses.set(request.socket, response));
  server.on('upgrade', (request: Request, stream, rest) => {
    const { socket } = request;
    if (early.has(request)) {
      socket.unshift(Buffer.concat([headOf(request), rest]));
      watch(socket);
      lastResponses.get(socket)!.once('finish', () => {
        if (socket.writable) readOn(socket);
      });
    } else if (unasked.has(request)) {
      askedNothing.set(socket, request.headers);
      socket.unshift(Buffer.concat([headOf(request, ['Connection: Upgrade', 'Upgrade: raw']), rest]));
      readOn(socket);
    } else {
      const given = askedNothing.get(socket);
      askedNothing.delete(socket);
      const awaitsStream = given !== undefined || STREAMS.test(request.headers.upgrade ?? '');
      request.headers = given ?? request.headers;
      streams.set(request, stream);
      stream.on('error', () => stream.destroy());
      if (rest.length > 0) stream.unshift(rest);
      answer(request, stream, listener, awaitsStream ? undefined : () => readOn(socket));
    }
  });
}

function isOpen(response: ServerResponse | undefined): boolean {
  return response !== undefined && !response.writableFinished;
}

/** However the client writes the path: the bytes behind it are no requests. */
function isTakenOver({ method, url = '' }: Request): boolean {
  if (method !== 'POST') return false;
  const [written = ''] = url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  const decoded = written.replaceAll(/%([0-9a-f]{2})/gi, (_, code: string) =>
    String.fromCodePoint(Number.parseInt(code, 16)),
  );
  return TAKEN_OVER_UNASKED.test(posix.normalize(decoded));
}

function headOf({ method, url, httpVersion, rawHeaders }: Request, added: readonly string[] = []): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return Buffer.from([...lines, ...added, '', ''].join('\r\n'), 'latin1');
}

/**
 * Node makes no response for an upgrade. When no route takes the connection over, `next` reads its next request; without
 * one the bytes behind are a stream that nobody wants.
 */
function answer(request: Request, stream: Duplex, listener: RequestListener, next: (() => void) | undefined): void {
  const { socket, headers } = request;
  const response = new CanonicalResponse(request);
  // A body that came in several pieces has left the stream behind it in another place than the socket.
  if (next === undefined || stream !== socket || /\bclose\b/i.test(headers.connection ?? ''))
    response.shouldKeepAlive = false;
  const drained = (): void => void response.emit('drain');
  response.assignSocket(socket);
  socket.on('drain', drained);
  response.once('finish', () => {
    socket.off('drain', drained);
    response.detachSocket(socket);
    process.nextTick(() => response.emit('close'));
    if (next !== undefined && response.shouldKeepAlive && !socket.readableEnded) next();
    else if (socket.readableEnded) socket.destroySoon();
    else endUnread(socket);
  });
  if (/^100-continue$/i.test(headers.expect ?? '')) response.writeContinue();
  listener(request, response);
}

/** A connection that is closed with unread bytes is reset, and the client may lose its answer. */
function endUnread(socket: Socket): void {
  const late = AbortSignal.timeout(MAX_REST_MS);
  const cut = (): void => void socket.destroy();
  late.addEventListener('abort', cut, { once: true });
  let left = MAX_REST_BYTES;
  socket.on('close', () => late.removeEventListener('abort', cut));
  socket.on('data', (piece: Buffer) => {
    left -= piece.length;
    if (left < 0) cut();
  });
  socket.end();
}

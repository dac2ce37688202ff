import type { IncomingHttpHeaders, IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { CanonicalResponse } from '../canonical-headers.ts';
import { ENDPOINTS } from '../endpoints.ts';

/** Requests that are followed by the client's stream, even without an upgrade; with or without a version. */
const TAKEN_OVER_UNASKED = new RegExp(
  `^POST (/v[\\d.]+)?(${ENDPOINTS.filter(({ takesOver }) => takesOver === 'always')
    .map(({ path }) => path.replaceAll(/\{\w+\}/g, '[^/]+'))
    .join('|')})(\\?|$)`,
);
/** Makes the parser stop after the head, as for a CONNECT. */
const STOP = 2;

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
 */
export function serveUpgrades(
  server: Server,
  accepted: 'connection' | 'secureConnection',
  listener: RequestListener,
): void {
  const stopped = new WeakSet<Request>();
  const askedNothing = new WeakMap<Socket, IncomingHttpHeaders>();
  const lastResponses = new WeakMap<Socket, ServerResponse>();

  server.on(accepted, ({ parser }: Accepted) => {
    const accept = parser.onIncoming;
    parser.onIncoming = (request, keepAlive) => {
      const asks = request.upgrade || !TAKEN_OVER_UNASKED.test(`${request.method} ${request.url}`);
      if (asks) return accept(request, keepAlive);
      request.upgrade = true;
      stopped.add(request);
      return STOP;
    };
  });
  server.prependListener('request', (request, response) => lastResponses.set(request.socket, response));
  server.on('upgrade', (request: Request, stream, rest) => {
    const { socket } = request;
    if (stopped.has(request)) {
      askedNothing.set(socket, request.headers);
      socket.unshift(Buffer.concat([headThatAsks(request), rest]));
      server.emit(accepted, socket);
      return;
    }
    request.headers = askedNothing.get(socket) ?? request.headers;
    askedNothing.delete(socket);
    streams.set(request, stream);
    stream.on('error', () => stream.destroy());
    if (rest.length > 0) stream.unshift(rest);
    afterwards(lastResponses.get(socket), () => {
      answer(request, stream, listener, () => server.emit(accepted, socket));
    });
  });
}

function headThatAsks({ method, url, httpVersion, rawHeaders }: Request): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  lines.push('Connection: Upgrade', 'Upgrade: raw', '', '');
  return Buffer.from(lines.join('\r\n'), 'latin1');
}

/** Answers come in the order of the requests, also for pipelined ones. */
function afterwards(before: ServerResponse | undefined, work: () => void): void {
  if (before === undefined || before.writableFinished) work();
  else before.once('finish', work);
}

/** Node makes no response for an upgrade. When no route takes the connection over, `next` reads its next request. */
function answer(request: Request, stream: Duplex, listener: RequestListener, next: () => void): void {
  const { socket, headers } = request;
  const response = new CanonicalResponse(request);
  // A body that came in several pieces has left the stream behind it in another place than the socket.
  if (stream !== socket || /\bclose\b/i.test(headers.connection ?? '')) response.shouldKeepAlive = false;
  const drained = (): void => void response.emit('drain');
  response.assignSocket(socket);
  socket.on('drain', drained);
  response.once('finish', () => {
    socket.off('drain', drained);
    response.detachSocket(socket);
    process.nextTick(() => response.emit('close'));
    if (response.shouldKeepAlive && !socket.readableEnded) next();
    else socket.destroySoon();
  });
  if (/^100-continue$/i.test(headers.expect ?? '')) response.writeContinue();
  listener(request, response);
}

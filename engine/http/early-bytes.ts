import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Duplex } from 'node:stream';

import { rawRefusal } from './headers.ts';

const HIJACKING = /\/(attach|start)(\?|$)/;
const HEAD_END = Buffer.from('\r\n\r\n');

type Pending = { request: IncomingMessage; early: Buffer[] };

const pending = new WeakMap<Duplex, Pending>();

/**
 * Keeps what a client sends behind a hijacking request in the same packet: it is stdin already, but the HTTP parser
 * takes it for a broken second request. Everything else that is broken is answered with 400.
 */
export function keepEarlyBytes(server: Server, listener: RequestListener): RequestListener {
  server.on('clientError', (error: Error & { rawPacket?: Buffer; bytesParsed?: number; reason?: string }, socket) => {
    const waiting = pending.get(socket);
    if (waiting !== undefined && error.rawPacket !== undefined) {
      waiting.early.push(waiting.early.length === 0 ? behindRequest(waiting.request, error) : error.rawPacket);
      return;
    }
    if (socket.writable) socket.end(rawRefusal(`malformed HTTP request: ${error.reason ?? error.message}`));
    else socket.destroy();
  });
  return (request, response) => {
    if (request.method === 'POST' && HIJACKING.test(request.url ?? '')) {
      pending.set(request.socket, { request, early: [] });
      response.once('finish', () => pending.delete(request.socket));
    }
    listener(request, response);
  };
}

/** What was kept for a socket that is taken over now. */
export function takeEarlyBytes(socket: Duplex): Buffer {
  const early = pending.get(socket)?.early ?? [];
  pending.delete(socket);
  return Buffer.concat(early);
}

/** By the request's own length where all of it came in this packet; by the parser's count otherwise. */
function behindRequest(
  request: IncomingMessage,
  { rawPacket, bytesParsed = 0 }: { rawPacket?: Buffer; bytesParsed?: number },
): Buffer {
  const packet = rawPacket ?? Buffer.alloc(0);
  const head = packet.indexOf(HEAD_END);
  const isWhole = head >= 0 && packet.subarray(0, 5).toString('latin1') === 'POST ';
  const bodyBytes = Number(request.headers['content-length'] ?? 0);
  return packet.subarray(isWhole ? head + HEAD_END.length + bodyBytes : bytesParsed);
}

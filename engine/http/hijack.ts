import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import type { FastifyReply, FastifyRequest } from 'fastify';

import { takeEarlyBytes } from './early-bytes.ts';
import { headerLines } from './headers.ts';
import { TAKEN_OVER } from './under-way.ts';

export const RAW_STREAM = 'application/vnd.engine.raw-stream';
const DOCKER_RAW_STREAM = 'application/vnd.docker.raw-stream';

/**
 * Takes over the connection: writes `101 UPGRADED` (when the request has `Upgrade: tcp`) or `200 OK` without chunked
 * encoding, and returns the raw duplex socket, which still yields the bytes that came with the head and body. A
 * half-close of the client ends only the readable side.
 */
export function hijack(request: FastifyRequest, reply: FastifyReply, options: { contentType?: string } = {}): Duplex {
  return takeOver(request, reply, head(request, reply, options.contentType ?? rawStreamType(request)));
}

/** The same for a protocol that has its own head. */
export function takeOver(request: FastifyRequest, reply: FastifyReply, responseHead: string): Socket {
  reply.hijack();
  const socket = request.raw.socket;
  release(request.raw, reply);
  socket.setTimeout(0);
  socket.setNoDelay(true);
  socket.write(responseHead);
  const early = takeEarlyBytes(socket);
  if (early.length > 0) socket.unshift(early);
  return socket;
}

/** The name of the stream's content type that this client understands. */
export function rawStreamType(request: FastifyRequest): string {
  return request.headers.accept?.includes(DOCKER_RAW_STREAM) === true ? DOCKER_RAW_STREAM : RAW_STREAM;
}

/** Whether the client wants 101 and an upgraded connection. */
export function wantsUpgrade(request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === 'tcp';
}

/**
 * Takes the socket away from the HTTP server.
 *
 * An upgraded connection is free already. On any other one the server's parser still listens: attaching a listener for
 * data makes Node hand the bytes over to JavaScript, removing all of them takes the parser's away.
 */
function release(request: IncomingMessage, reply: FastifyReply): void {
  const { socket } = request;
  reply.raw.detachSocket(socket);
  reply.raw.emit(TAKEN_OVER);
  socket.on('data', () => undefined);
  for (const event of ['data', 'end', 'close', 'drain', 'error', 'timeout']) socket.removeAllListeners(event);
  // Somebody has to listen from the first moment: a reset by the client must not end the daemon.
  socket.on('error', () => socket.destroy());
  socket.pause();
}

function head(request: FastifyRequest, reply: FastifyReply, contentType: string): string {
  const upgrade = wantsUpgrade(request.raw);
  const lines = [upgrade ? 'HTTP/1.1 101 UPGRADED' : 'HTTP/1.1 200 OK', `Content-Type: ${contentType}`];
  if (upgrade) lines.push('Connection: Upgrade', 'Upgrade: tcp');
  const { 'content-type': _type, connection: _connection, ...others } = reply.getHeaders();
  return `${[...lines, ...headerLines(others)].join('\r\n')}\r\n\r\n`;
}

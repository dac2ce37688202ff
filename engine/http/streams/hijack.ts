import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

import { headerLines } from '../headers.ts';
import { TAKEN_OVER } from '../listening/pending-requests.ts';
import type { Reply } from '../reply.ts';
import type { ApiRequest } from '../request.ts';
import { streamBehind } from './upgrades.ts';

const RAW_STREAM = 'application/vnd.engine.raw-stream';
const DOCKER_RAW_STREAM = 'application/vnd.docker.raw-stream';

/**
 * Takes over the connection: writes `101 UPGRADED` (when the request has `Upgrade: tcp`) or `200 OK` without chunked
 * encoding, and returns the client's stream from the first byte behind the request. A half-close of the client, even an
 * earlier one, ends only its readable side.
 */
export function hijack(request: ApiRequest, reply: Reply, options: { contentType?: string } = {}): Duplex {
  return takeOver(request, reply, head(request, reply, options.contentType ?? rawStreamType(request)));
}

/** Like `hijack`, for a protocol that has its own head. */
export function takeOver({ raw }: ApiRequest, reply: Reply, responseHead: string): Duplex {
  const stream = streamBehind(raw);
  if (stream === undefined) throw new Error(`the connection of ${raw.method} ${raw.url} cannot be taken over`);
  reply.takeOver();
  reply.raw.detachSocket(raw.socket);
  reply.raw.emit(TAKEN_OVER);
  raw.socket.setTimeout(0);
  raw.socket.setNoDelay(true);
  stream.write(responseHead);
  return stream;
}

/** The name of the stream's content type that this client understands. */
export function rawStreamType(request: ApiRequest): string {
  return request.headers.accept?.includes(DOCKER_RAW_STREAM) === true ? DOCKER_RAW_STREAM : RAW_STREAM;
}

/** Whether the client asks for 101 and an upgraded connection. */
export function wantsUpgrade(request: IncomingMessage): boolean {
  return request.headers.upgrade?.toLowerCase() === 'tcp' && streamBehind(request) !== undefined;
}

function head(request: ApiRequest, reply: Reply, contentType: string): string {
  const upgrade = wantsUpgrade(request.raw);
  const lines = [upgrade ? 'HTTP/1.1 101 UPGRADED' : 'HTTP/1.1 200 OK', `Content-Type: ${contentType}`];
  if (upgrade) lines.push('Connection: Upgrade', 'Upgrade: tcp');
  const { 'content-type': _type, connection: _connection, ...others } = reply.getHeaders();
  return `${[...lines, ...headerLines(others)].join('\r\n')}\r\n\r\n`;
}

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

import { headerLines } from '../headers.ts';
import { TAKEN_OVER } from '../listening/pending-requests.ts';
import type { Reply } from '../reply.ts';
import type { ApiRequest } from '../request.ts';
import { isBelow } from '../versions/api-version.ts';
import { streamBehind } from './upgrades.ts';

const RAW_STREAM = 'application/vnd.engine.raw-stream';
const DOCKER_RAW_STREAM = 'application/vnd.docker.raw-stream';
const DOCKER_MULTIPLEXED = 'application/vnd.docker.multiplexed-stream';

/**
 * Takes over the connection: writes `101 UPGRADED` (when the request has `Upgrade: tcp`) or `200 OK` without chunked
 * encoding, and returns the client's stream from the first byte behind the request. A half-close of the client, even an
 * earlier one, ends only its readable side.
 */
export function hijack(request: ApiRequest, reply: Reply, { tty = true }: { tty?: boolean } = {}): Duplex {
  const isFramed = !tty && wantsUpgrade(request.raw); // dockerd tells it to clients that upgrade alone
  return takeOver(request, reply, head(request, reply, rawStreamType(request, { tty: !isFramed })));
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

/** The content type of a stream, in the name that this client understands; without a terminal it has frames. */
export function rawStreamType(request: ApiRequest, { tty }: { tty: boolean }): string {
  if (!isBelow(request.apiVersion, '1.42')) return tty ? DOCKER_RAW_STREAM : DOCKER_MULTIPLEXED;
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

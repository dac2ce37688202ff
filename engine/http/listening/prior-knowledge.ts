import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Error of Node's parser for the first bytes of HTTP/2. */
export const PREFACE_ERROR = 'HPE_PAUSED_H2_UPGRADE';
/** The header of a request that stands for a connection with HTTP/2 from its first byte: its client awaits no 101. */
export const PRIOR_KNOWLEDGE_HEADER = 'x-http2-prior-knowledge';
const HEAD = [
  'POST /grpc HTTP/1.1',
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: h2c',
  `${PRIOR_KNOWLEDGE_HEADER}: 1`,
  '',
  '',
].join('\r\n');

const read = new WeakSet<Socket>();

/**
 * Reads a connection that began with HTTP/2, as BuildKit's clients open it, again as an upgrade of `/grpc`: it passes the same
 * checks as one. It is closed if it was refused. `received`: the bytes of the client so far.
 */
export function readAsUpgrade(
  server: Server,
  accepted: 'connection' | 'secureConnection',
  socket: Socket,
  received: Buffer,
): void {
  if (read.has(socket)) return void socket.end();
  read.add(socket);
  socket.on('data', () => undefined); // Node's parser lets go of a connection that has a reader
  for (const event of ['data', 'end', 'drain']) socket.removeAllListeners(event);
  (socket as { readableFlowing: boolean | null }).readableFlowing = null;
  socket.unshift(Buffer.concat([Buffer.from(HEAD), received]));
  server.emit(accepted, socket);
}

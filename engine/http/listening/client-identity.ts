import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

import { peerUser } from '../../host/network/peer-user.ts';

/**
 * A name of the client behind a request, which no other client can take: its certificate, its address, or the user of a
 * Unix socket. Undefined for a connection that is closed. A client with credentials in its requests is another one: a proxy
 * may stand in front of several.
 */
export function clientIdentity({ socket, headers: { authorization } }: IncomingMessage): string | undefined {
  const connection = connectionIdentity(socket);
  if (connection === undefined || authorization === undefined) return connection;
  return `${connection} with ${hash('sha256', authorization)}`;
}

function connectionIdentity(socket: Socket): string | undefined {
  const certificate = socket instanceof TLSSocket && socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate !== undefined) return `certificate ${certificate.fingerprint256}`;
  if (socket.remoteAddress !== undefined) return `address ${socket.remoteAddress}`;
  const user = peerUser(socket);
  return user === undefined ? undefined : `user ${user}`;
}

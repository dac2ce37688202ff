import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Addresses from the PROXY protocol. */
const named = new WeakMap<Socket, string>();

/**
 * The address at the other end of a connection, or the one that a trusted proxy named at its beginning. A client on a Unix socket
 * has no address; it is on this machine.
 */
export function peerOf({ socket }: Pick<IncomingMessage, 'socket'>): string {
  const address = named.get(socket) ?? socket.remoteAddress ?? '127.0.0.1';
  return address.startsWith('::ffff:') ? address.slice(7) : address;
}

export function namePeer(socket: Socket, address: string): void {
  named.set(socket, address);
}

import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

import type { Gateway } from '../../gateway.ts';
import { namePeer, peerOf } from './peer.ts';
import { readProxyHeader } from './proxy-header.ts';

/**
 * Where the settings say so, connections of trusted proxies begin with a header of the PROXY protocol: it is taken off before the
 * server sees the connection, and names its client. A connection without one is closed: its client would be unknown.
 */
export function takeProxyHeaders(gateway: Gateway, server: Server | TlsServer, timeoutMs: number): void {
  const listeners = server.listeners('connection');
  /** The clients of connections, by the proxy's address and port: a TLS connection has a socket of its own. */
  const clients = new Map<string, string>();
  const accept = (socket: Socket): void => {
    for (const listener of listeners) listener.call(server, socket);
  };
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const { config, trusted } = gateway.policy;
    if (!config.clientAddress.proxyProtocol || !trusted.trusts(peerOf({ socket }))) return accept(socket);
    takeHeader(gateway, socket, timeoutMs, (address) => {
      if (address !== undefined) {
        const proxy = nameOf(socket);
        namePeer(socket, address);
        clients.set(proxy, address);
        socket.once('close', () => clients.delete(proxy));
      }
      accept(socket);
    });
  });
  server.prependListener('secureConnection', (socket: Socket) => {
    const address = clients.get(nameOf(socket));
    if (address !== undefined) namePeer(socket, address);
  });
}

/** Calls `done` once the header is complete, with the client's address. */
function takeHeader(
  gateway: Gateway,
  socket: Socket,
  timeoutMs: number,
  done: (address: string | undefined) => void,
): void {
  let bytes = Buffer.alloc(0);
  const giveUp = (): void => void socket.destroy();
  const timer = setTimeout(giveUp, timeoutMs).unref();
  const forget = (): void => {
    clearTimeout(timer);
    gateway.handshakes.delete(socket);
  };
  const read = (): void => {
    bytes = Buffer.concat([bytes, (socket.read() as Buffer | null) ?? Buffer.alloc(0)]);
    const header = readProxyHeader(bytes);
    if (header === 'incomplete') return;
    if (header === 'invalid') {
      gateway.counts.rejectedConnections += 1;
      gateway.log.noProxyHeader(peerOf({ socket }));
      return giveUp();
    }
    forget();
    socket.off('readable', read).off('end', giveUp).off('error', giveUp).off('close', forget);
    if (bytes.length > header.bytes) socket.unshift(bytes.subarray(header.bytes));
    done(header.address);
  };
  gateway.handshakes.add(socket);
  socket.on('readable', read).on('end', giveUp).on('error', giveUp).on('close', forget);
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

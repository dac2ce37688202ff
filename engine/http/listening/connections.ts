import type { RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Server as TlsServer } from 'node:tls';

import { hardLimits } from '../../host/confinement/privileges.ts';
import { HangUps } from '../../host/hang-ups.ts';
import { asRequest, REQUEST_ID_HEADER, requestId } from '../../lib/request-id.ts';
import { rawRefusal } from '../headers.ts';
import { serveUpgrades } from '../streams/upgrades.ts';
import { NEWEST, type ApiVersion } from '../versions/api-version.ts';
import { IdleConnections } from './idle-connections.ts';
import { PREFACE_ERROR, readAsUpgrade } from './prior-knowledge.ts';

/** The first byte of a TLS handshake; no HTTP request begins with it. */
const TLS_HANDSHAKE = 22;
const FIRST_BYTE_TIMEOUT_MS = 20_000;
/** Node's error for a head that is not complete in time: its client awaits no answer. */
const HEAD_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';
/** Our words for the parser's errors; others are told without a reason. */
const MISTAKES: ReadonlyMap<string | undefined, string> = new Map([
  ['HPE_INVALID_METHOD', ': the method is unknown'],
  ['HPE_INVALID_URL', ': the address has characters that must be encoded'],
  ['HPE_INVALID_VERSION', ': the version of HTTP is unknown'],
  ['HPE_INVALID_CONSTANT', ': the first line does not name HTTP'],
  ['HPE_HEADER_OVERFLOW', ': the head is too long'],
  ['HPE_INVALID_HEADER_TOKEN', ': a header has an invalid character'],
  ['HPE_INVALID_CONTENT_LENGTH', ': the header Content-Length is not a number'],
  ['HPE_UNEXPECTED_CONTENT_LENGTH', ': the length is given twice'],
  ['HPE_INVALID_TRANSFER_ENCODING', ': the transfer encoding is unknown'],
  ['HPE_INVALID_CHUNK_SIZE', ': a chunk has no length'],
  ['HPE_LF_EXPECTED', ': a line does not end with CR LF'],
  ['HPE_CR_EXPECTED', ': a line does not end with CR LF'],
]);
/** More are closed at once: half of the descriptors stay for the daemon's own work. */
const MAX_CONNECTIONS = 8192;
/** Over TCP as in Go: after silence, this many unanswered probes mean that the client is gone. */
const [KEEP_ALIVE_MS, PROBES] = [15_000, 9];

/** Passes the requests of all connections to the listener. Returns the open connections. */
export function serve(server: Server, answering: RequestListener, newest = NEWEST): ReadonlySet<Socket> {
  const idle = new IdleConnections();
  const listener: RequestListener = (request, response) => {
    idle.begin(request.socket, response);
    asRequest(requestId(request.headers[REQUEST_ID_HEADER]), () => answering(request, response));
  };
  const open = new Set<Socket>();
  const hangUps = new HangUps();
  const isTls = isTlsServer(server);
  if (isTls) refusePlainText(server, newest);
  server.on('connection', (socket: Socket) => {
    if (open.has(socket)) return; // its next request is read
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.setKeepAlive(true, KEEP_ALIVE_MS, KEEP_ALIVE_MS, PROBES);
  });
  const accepted = isTls ? 'secureConnection' : 'connection';
  const known = new WeakSet<Socket>();
  server.on(accepted, (socket: Socket) => {
    if (known.has(socket)) return;
    known.add(socket);
    idle.add(socket);
    socket.on('close', () => idle.delete(socket));
    // An error handler is needed even when a route has taken the connection over: a reset must not end the daemon.
    socket.on('error', () => socket.destroy());
    socket.on('end', () => {
      if (!socket.writableEnded) hangUps.watch(socket);
    });
  });
  server.maxConnections = Math.min(MAX_CONNECTIONS, (hardLimits().get('RLIMIT_NOFILE')?.soft ?? Infinity) / 2);
  server.on('request', listener);
  // Expectations other than `100-continue` are ignored: the request is answered.
  server.on('checkExpectation', listener);
  server.on('clientError', (error: Error & { code?: string; rawPacket?: Buffer }, socket: Socket) => {
    if (error.code === PREFACE_ERROR && error.rawPacket !== undefined && !idle.isAnswering(socket))
      readAsUpgrade(server, accepted, socket, error.rawPacket);
    else if (socket.writable && error.code !== HEAD_TIMEOUT && !idle.isAnswering(socket))
      socket.end(rawRefusal(`malformed HTTP request${MISTAKES.get(error.code) ?? ''}`, newest));
    else socket.destroy();
  });
  serveUpgrades(server, accepted, listener, (socket) => hangUps.watch(socket));
  // The writable side stays open when a client has sent its last byte.
  Object.assign(server, { httpAllowHalfOpen: true });
  return open;
}

function isTlsServer(server: Server): server is Server & TlsServer {
  return 'setSecureContext' in server;
}

/** A client without TLS gets a message instead of a closed connection. */
function refusePlainText(server: Server, newest: ApiVersion): void {
  const accept = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const giveUp = (): void => void socket.destroy();
    socket.on('error', giveUp);
    socket.setTimeout(FIRST_BYTE_TIMEOUT_MS, giveUp);
    socket.once('readable', () => {
      const first = socket.read(1) as Buffer | null;
      if (first === null) return giveUp();
      if (first[0] !== TLS_HANDSHAKE) {
        socket.end(rawRefusal('Client sent an HTTP request to an HTTPS server.', newest));
        return socket.resume(); // unread bytes would reset the connection, and lose the answer
      }
      socket.setTimeout(0, giveUp);
      socket.unshift(first);
      return accept.forEach((listener) => listener.call(server, socket));
    });
  });
}

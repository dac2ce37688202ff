import { createServer, type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { headersOf, refusalOf } from '@gantry/limiter/present.ts';
import type { Decision } from '@gantry/limiter/types.ts';

import type { Config } from '../config/schema.ts';
import { certificateOf } from '../config/tls.ts';
import type { Gateway } from '../gateway.ts';
import { countAnswer } from '../metrics.ts';
import { anonymousCaller } from '../policy.ts';
import { ClientResponse } from './client-response.ts';
import { Connection, endLingering } from './connections/connection.ts';
import { peerOf } from './connections/peer.ts';
import { takeProxyHeaders } from './connections/proxy-protocol.ts';
import { closeExchange, handleRequest } from './handle.ts';
import { hasBody } from './headers/headers.ts';

type ParseError = Error & { code?: string };

/** Headers are small: a client that sends them for longer is broken or an attacker. */
const CLIENT_HEADERS_TIMEOUT_MS = 15_000;
/** Longer than the minute after which load balancers close their idle connections. */
const KEEP_ALIVE_MS = 65_000;
/** More than the headers of any known client, also with the cookies of a web interface. */
const MAX_HEADER_BYTES = 32_768;
/** Node looks for slow clients this often, or more often where `timeouts.requestMs` is short. */
const MAX_CHECK_INTERVAL_MS = 3750;
const TLS = { ALPNProtocols: ['http/1.1'], minVersion: 'TLSv1.2' } as const;

/** The HTTP server for clients, not listening yet. Node's parser is strict: ambiguous requests are errors. */
export function createProxyServer(gateway: Gateway, isTls = false): Server | TlsServer {
  const handle = (req: IncomingMessage, res: ClientResponse): void => handleRequest(gateway, req, res);
  // HTTP/2 over a plain connection is not offered: the request is served as it is. So is one with a body, which
  // would be left unread otherwise, and one before whose answer there are others.
  const shouldUpgradeCallback = (req: IncomingMessage): boolean =>
    req.headers.upgrade?.toLowerCase() !== 'h2c' && !hasBody(req) && !isBusy(gateway, req);
  const server = createHttpServer(gateway, isTls, handle, shouldUpgradeCallback);
  server.on('checkContinue', (req: IncomingMessage, res: ClientResponse) =>
    handleRequest(gateway, req, res, { expectsContinue: true }),
  );
  takeProxyHeaders(gateway, server, CLIENT_HEADERS_TIMEOUT_MS);
  return server;
}

/** A server without a handler for upgrades of its own; `shouldUpgradeCallback` decides about these. */
export function createHttpServer(
  gateway: Gateway,
  isTls: boolean,
  handle: (req: IncomingMessage, res: ClientResponse) => void,
  shouldUpgradeCallback: (req: IncomingMessage) => boolean,
): Server | TlsServer {
  const { timeouts, tls } = gateway.policy.config;
  const options = {
    ServerResponse: ClientResponse,
    insecureHTTPParser: false,
    requireHostHeader: false, // answered like other bad requests, with the headers of the limits
    maxHeaderSize: MAX_HEADER_BYTES,
    connectionsCheckingInterval: Math.min(MAX_CHECK_INTERVAL_MS, Math.max(100, timeouts.requestMs / 4)),
    noDelay: true,
    shouldUpgradeCallback,
    optimizeEmptyRequests: true,
  };
  const server =
    isTls && tls !== undefined
      ? createTlsServer({ ...options, ...certificateOf(tls), ...TLS, handshakeTimeout: CLIENT_HEADERS_TIMEOUT_MS })
      : createServer(options);
  applyTimeouts(server, gateway.policy.config);
  server.maxHeadersCount = 0; // more headers than a count would be dropped silently; `maxHeaderSize` is the limit
  server.on('request', handle);
  server.on('checkExpectation', handle);
  server.on('upgrade', (req: IncomingMessage, _socket: Duplex, head: Buffer) => handleUpgrade(gateway, req, head));
  server.on('connect', (req: IncomingMessage) => handleUpgrade(gateway, req, Buffer.alloc(0)));
  server.on('clientError', (error: ParseError, socket: Socket) => clientError(gateway, error, socket));
  server.on('drop', () => (gateway.counts.rejectedConnections += 1));
  server.on('connection', (socket: Socket) => {
    if (!gateway.addresses.enter(gateway.policy, socket)) {
      gateway.counts.rejectedConnections += 1;
      socket.destroy();
      return;
    }
    if (!isTls) return opened(gateway, socket);
    // A connection counts as a client only after its TLS handshake.
    gateway.handshakes.add(socket);
    socket.once('close', () => gateway.handshakes.delete(socket));
  });
  server.on('secureConnection', (socket: Socket) => opened(gateway, socket));
  server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy());
  return server;
}

function opened(gateway: Gateway, socket: Socket): void {
  gateway.counts.openConnections += 1;
  const connection = new Connection(socket);
  gateway.connections.set(socket, connection);
  socket.once('close', () => {
    gateway.counts.openConnections -= 1;
    gateway.connections.delete(socket);
    // Not every request has a response that emits `close`: not those that wait for their turn, nor upgraded ones.
    for (const exchange of [...connection.exchanges]) closeExchange(exchange);
  });
}

/** Sets the timeouts, which a reload may change on an open server. */
export function applyTimeouts(server: Server | TlsServer, { timeouts, sizes, tls }: Config): void {
  if (server instanceof TlsServer && tls !== undefined) server.setSecureContext(certificateOf(tls));
  server.headersTimeout = CLIENT_HEADERS_TIMEOUT_MS;
  server.requestTimeout = timeouts.requestMs;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.timeout = timeouts.idleMs;
  server.maxConnections = sizes.connections;
}

/** Are there requests of this connection that are not answered yet? */
function isBusy({ connections }: Gateway, { socket }: IncomingMessage): boolean {
  return (connections.get(socket)?.exchanges.length ?? 0) > 0;
}

function handleUpgrade(gateway: Gateway, req: IncomingMessage, head: Buffer): void {
  const { socket } = req;
  socket.on('error', () => socket.destroy()); // the server no longer listens to it
  if (isBusy(gateway, req)) {
    // A CONNECT, for which nobody asks whether to upgrade. The connection ends after the answers before it.
    gateway.connections.get(socket)!.ending = true;
    return;
  }
  const res = new ClientResponse(req);
  res.assignSocket(socket);
  res.once('finish', () => {
    res.detachSocket(socket);
    endLingering(socket);
  });
  handleRequest(gateway, req, res, { upgrade: { socket, head } });
}

const STATUS_BY_CODE: ReadonlyMap<string, number> = new Map(
  Object.entries({
    HPE_HEADER_OVERFLOW: 431,
    ERR_HTTP_REQUEST_TIMEOUT: 408,
    HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  }),
);

/**
 * The client sent bytes that cannot be parsed, or was too slow. Nothing after them can be read, so the connection
 * ends; requests before it are still answered.
 */
function clientError(gateway: Gateway, error: ParseError, socket: Socket): void {
  const connection = gateway.connections.get(socket);
  if (connection === undefined || error.code === 'ECONNRESET' || !socket.writable || socket.bytesRead === 0) {
    socket.destroy();
    return;
  }
  if (connection.ending) return; // the parser complains about everything that follows
  gateway.counts.unreadable += 1;
  const broken = connection.exchanges.find(({ req }) => !req.complete);
  if (broken?.res.headersSent === true) {
    socket.destroy();
    return;
  }
  const decision = broken?.decision ?? admitUnreadable(gateway, socket);
  if (broken !== undefined) closeExchange(broken);
  connection.ending = true;
  void tellWhenDecided(gateway, connection, decision, STATUS_BY_CODE.get(error.code ?? '') ?? 400);
}

async function tellWhenDecided(
  gateway: Gateway,
  { socket, exchanges }: Connection,
  decision: Decision | Promise<Decision>,
  status: number,
): Promise<void> {
  try {
    const decided = await decision;
    decided.end(0);
    if (exchanges.length === 0) tell(gateway, socket, decided, status);
  } catch (error) {
    gateway.log.bug(error);
    socket.destroy();
  }
}

/** The caller is the connection's address. */
function admitUnreadable({ policy, limiter }: Gateway, socket: Socket): Decision | Promise<Decision> {
  const caller = anonymousCaller(policy, peerOf({ socket }));
  return limiter.admit(caller, policy.routes.unreadable);
}

function tell(gateway: Gateway, socket: Socket, decision: Decision, status: number): void {
  const reason = STATUS_CODES[status] ?? 'Bad Request';
  const own = decision.allowed
    ? { status, statusText: reason, headers: headersOf(decision), body: JSON.stringify({ message: reason }) }
    : refusalOf(decision, gateway.policy.refusal);
  countAnswer(gateway.counts.ownAnswers, own.status);
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    ...own.headers,
    'content-length': String(Buffer.byteLength(own.body)),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const statusText = own.statusText ?? STATUS_CODES[own.status] ?? '';
  socket.write(`HTTP/1.1 ${own.status} ${statusText}\r\n${lines.join('')}\r\n${own.body}`);
  endLingering(socket);
}

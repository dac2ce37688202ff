import { createServer, type IncomingMessage, type Server, STATUS_CODES, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import { headersOf, refusalOf } from '@gantry/limiter/present.ts';

import type { Config } from '../config/schema.ts';
import type { Gateway } from '../gateway.ts';
import { countAnswer } from '../metrics.ts';
import { anonymousCaller } from '../policy.ts';
import { hasBody } from './graphql-body.ts';
import { handleRequest } from './handle.ts';

/** The server that clients talk to, not listening yet. Node's parser is strict: what is ambiguous is an error. */
export function createProxyServer(gateway: Gateway): Server {
  const { timeouts, sizes } = gateway.policy.config;
  const server = createServer({
    insecureHTTPParser: false,
    requireHostHeader: false, // answered like other bad requests, with the headers of the limits
    maxHeaderSize: sizes.headerBytes,
    // How often slow clients are looked for.
    connectionsCheckingInterval: Math.min(5000, Math.max(100, timeouts.headersMs / 4)),
    noDelay: true,
    // HTTP/2 over a plain connection is not offered: the request is served as it is. So is one with a body, which
    // would be left unread otherwise.
    shouldUpgradeCallback: (req) => req.headers.upgrade?.toLowerCase() !== 'h2c' && !hasBody(req),
    optimizeEmptyRequests: true,
  });
  applyTimeouts(server, gateway.policy.config);
  server.on('request', (req: IncomingMessage, res: ServerResponse) => handleRequest(gateway, req, res));
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) =>
    handleRequest(gateway, req, res, { expectsContinue: true }),
  );
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => handleRequest(gateway, req, res));
  server.on('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) =>
    handleUpgrade(gateway, req, socket, head),
  );
  server.on('connect', (req: IncomingMessage, socket: Socket) => handleUpgrade(gateway, req, socket, Buffer.alloc(0)));
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => clientError(gateway, error, socket));
  server.on('drop', () => (gateway.counts.rejectedConnections += 1));
  server.on('connection', (socket: Socket) => {
    gateway.counts.openConnections += 1;
    gateway.connections.add(socket);
    socket.once('close', () => {
      gateway.counts.openConnections -= 1;
      gateway.connections.delete(socket);
    });
  });
  return server;
}

/** What a reload can change on an open server. */
export function applyTimeouts(server: Server, { timeouts, sizes }: Config): void {
  server.headersTimeout = timeouts.headersMs;
  server.requestTimeout = timeouts.requestMs;
  server.keepAliveTimeout = timeouts.keepAliveMs;
  server.timeout = timeouts.idleMs;
  server.maxConnections = sizes.connections;
}

function handleUpgrade(gateway: Gateway, req: IncomingMessage, socket: Socket, head: Buffer): void {
  const res = new ServerResponse(req);
  socket.on('error', () => socket.destroy()); // the server no longer listens to it
  res.assignSocket(socket);
  res.once('finish', () => {
    res.detachSocket(socket);
    socket.end();
  });
  handleRequest(gateway, req, res, { upgrade: { socket, head } });
}

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};

/** A request that cannot be read: there is no caller but the connection's address, which it counts on. */
function clientError(gateway: Gateway, error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable || socket.destroyed) {
    socket.destroy();
    return;
  }
  gateway.counts.unreadable += 1;
  const { policy } = gateway;
  const caller = anonymousCaller(policy, socket.remoteAddress?.replace(/^::ffff:/, '') ?? '127.0.0.1');
  const write = (status: number, reason: string, headers: Record<string, string>, body: string): void => {
    countAnswer(gateway.counts.ownAnswers, status);
    const length = String(Buffer.byteLength(body));
    const all = { 'content-type': 'application/json; charset=utf-8', ...headers, 'content-length': length };
    const lines = Object.entries({ ...all, connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${reason}\r\n${lines.join('')}\r\n${body}`, () => socket.destroy());
  };
  const status = STATUS_BY_CODE[error.code ?? ''] ?? 400;
  const reason = STATUS_CODES[status] ?? 'Bad Request';
  Promise.resolve(gateway.limiter.admit(caller, policy.routes.unreadable)).then(
    (decision) => {
      if (decision.allowed) {
        decision.end(0);
        return write(status, reason, headersOf(decision), JSON.stringify({ message: reason }));
      }
      const refusal = refusalOf(decision, policy.refusal);
      return write(
        refusal.status,
        refusal.statusText ?? STATUS_CODES[refusal.status] ?? '',
        refusal.headers,
        refusal.body,
      );
    },
    (failure: unknown) => {
      gateway.log.bug(failure);
      socket.destroy();
    },
  );
}

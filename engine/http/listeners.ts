import { once } from 'node:events';
import { chmodSync, chownSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { dirname } from 'node:path';

import type { Config } from '../config/config.ts';
import { parseHost } from '../config/hosts.ts';
import { groupId } from '../host/groups.ts';
import { EngineError, hasCode } from '../lib/errors.ts';
import { makeFolders } from '../lib/folders.ts';
import { keepEarlyBytes } from './early-bytes.ts';
import { rawRefusal } from './headers.ts';
import type { UnderWay } from './under-way.ts';

const OPTIONS = {
  // A hijacking POST is an ordinary request for the routes; they take the socket over themselves.
  shouldUpgradeCallback: () => false,
  requireHostHeader: false, // server.ts refuses with JSON
  keepAliveTimeout: 60_000,
  requestTimeout: 0, // archives may take as long as they take
  // As Go's: some clients repeat a whole create body in the query, others send all their credentials in a header.
  maxHeaderSize: 1024 * 1024,
};
/** The first byte of a TLS handshake; no HTTP request begins with it. */
const TLS_HANDSHAKE = 22;
const FIRST_BYTE_TIMEOUT_MS = 60_000;
/** How long the end waits for the answers that clients still wait for. */
const LAST_ANSWERS_SECONDS = 10;

/** Hosts that are open, as clients reach them: with the port that the kernel chose for port 0. */
export type Listeners = AsyncDisposable & { readonly hosts: readonly string[] };
type Listening = AsyncDisposable & { readonly host: string };

/**
 * Opens every host of the configuration; none is left open when one fails. Disposing lets nobody in any more, and cuts
 * the connections when the requests under way have their answers.
 */
export async function openListeners(
  config: Config,
  listener: RequestListener,
  underWay: UnderWay,
  tcpListener: RequestListener = listener,
): Promise<Listeners> {
  await using undo = new AsyncDisposableStack();
  const hosts = config.hosts.map((text) => parseHost(text, config.tls));
  const open: string[] = [];
  for (const host of hosts) {
    if (host.kind === 'tcp')
      open.push(undo.use(await openTcp(config, host.address, host.port, tcpListener, underWay)).host);
  }
  // A socket's file last: who waits for it finds all of them open.
  for (const host of hosts) {
    if (host.kind === 'unix') open.push(undo.use(await openUnix(config, host.path, listener, underWay)).host);
  }
  const parts = undo.move();
  return { hosts: open, [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
}

async function openTcp(
  config: Config,
  address: string,
  port: number,
  listener: RequestListener,
  underWay: UnderWay,
): Promise<Listening> {
  const server = config.tls ? createTlsServer({ ...OPTIONS, ...certificates(config) }) : createServer(OPTIONS);
  const connections = config.tls ? refusePlainText(server) : [];
  serve(server, listener);
  server.listen({ host: address, port });
  await once(server, 'listening');
  const bound = server.address() as AddressInfo;
  const host = `tcp://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`;
  return { host, [Symbol.asyncDispose]: async () => await close(server, underWay, connections) };
}

async function openUnix(
  config: Config,
  path: string,
  listener: RequestListener,
  underWay: UnderWay,
): Promise<Listening> {
  makeFolders(dirname(path), 0o755);
  const gid = config.group === '' ? undefined : groupId(config.group);
  if (await answers(path)) throw new EngineError('conflict', `unix://${path}: another daemon listens there`);
  rmSync(path, { force: true });
  const server = createServer(OPTIONS);
  serve(server, listener);
  server.listen(path);
  await once(server, 'listening');
  chmodSync(path, 0o660);
  if (gid !== undefined) chownSync(path, 0, gid);
  return {
    host: `unix://${path}`,
    [Symbol.asyncDispose]: async () => {
      rmSync(path, { force: true });
      await close(server, underWay);
    },
  };
}

function serve(server: Server, listener: RequestListener): void {
  const handle = keepEarlyBytes(server, listener);
  server.on('request', handle);
  // What a client expects beyond `100-continue` is none of the API's: it gets the answer of the request.
  server.on('checkExpectation', handle);
  // The writable side stays open when a client has sent its last byte.
  Object.assign(server, { httpAllowHalfOpen: true });
}

/** Ends a server with its connections, also those on which there was no request yet. */
async function close(server: Server, underWay: UnderWay, connections: Iterable<Socket> = []): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  await underWay.answered(LAST_ANSWERS_SECONDS);
  server.closeAllConnections();
  for (const socket of connections) socket.destroy();
  await closed;
}

/** A client without TLS would only see its connection end: it is told why. Returns the connections that are open. */
function refusePlainText(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  const accept = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const giveUp = (): void => void socket.destroy();
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', giveUp);
    socket.setTimeout(FIRST_BYTE_TIMEOUT_MS, giveUp);
    socket.once('readable', () => {
      const first = socket.read(1) as Buffer | null;
      if (first === null) return giveUp();
      if (first[0] !== TLS_HANDSHAKE) {
        socket.end(rawRefusal('Client sent an HTTP request to an HTTPS server.'));
        return socket.resume(); // what is left unread would reset the connection, and the answer with it
      }
      socket.setTimeout(0, giveUp);
      socket.unshift(first);
      return accept.forEach((listener) => listener.call(server, socket));
    });
  });
  return open;
}

/** Whether somebody accepts connections on a socket that is there. */
async function answers(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ECONNREFUSED') || hasCode(error, 'ENOTSOCK')) return false;
    throw error;
  } finally {
    socket.destroy();
  }
}

function certificates({ tlscacert, tlscert, tlskey, tlsverify }: Config): object {
  return {
    cert: readFileSync(tlscert),
    key: readFileSync(tlskey),
    ...(tlsverify && { ca: readFileSync(tlscacert), requestCert: true, rejectUnauthorized: true }),
  };
}

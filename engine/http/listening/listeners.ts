import { once } from 'node:events';
import { chmodSync, chownSync, lstatSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { dirname } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
import { isLoopback, parseHost } from '../../config/hosts.ts';
import { groupId } from '../../host/groups.ts';
import { passedSockets, type PassedSocket } from '../../host/passed-sockets.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { makeFolders } from '../../lib/folders.ts';
import { CanonicalResponse } from '../canonical-headers.ts';
import { apiVersionsOf } from '../versions/api-version.ts';
import { serve } from './connections.ts';
import { overPlainTcp } from './origins.ts';
import type { PendingRequests } from './pending-requests.ts';

/** From the connection, or the first byte of a later request, to the end of the head. */
const HEAD_TIMEOUT_MS = 20_000;

const SERVER_OPTIONS = {
  ServerResponse: CanonicalResponse,
  allowHalfOpen: true, // a client that has half-closed still reads; without TLS this is the default
  requireHostHeader: false, // server.ts answers these with JSON
  keepAliveTimeout: 600_000, // there is also a limit to their number
  requestTimeout: 0, // archives may take any time
  headersTimeout: HEAD_TIMEOUT_MS,
  handshakeTimeout: HEAD_TIMEOUT_MS,
  connectionsCheckingInterval: HEAD_TIMEOUT_MS / 2,
  // As Go's: some clients repeat a whole create body in the query, others send all their credentials in a header.
  maxHeaderSize: 1024 * 1024,
};
/** How long the daemon's end waits for answers under way. */
const LAST_ANSWERS_TIMEOUT_SECONDS = 10;

/** The open hosts as clients reach them, with the kernel's choice for port 0. */
export type Listeners = AsyncDisposable & { readonly hosts: readonly string[] };
type Listening = AsyncDisposable & { readonly host: string };
/** An open server, for `closeServer`. */
type OpenServer = Readonly<{ server: Server; connections: ReadonlySet<Socket>; host: string; port: number }>;

/**
 * Opens every host of the configuration, or none if one fails. Disposing accepts no more clients, and closes the
 * connections when the requests under way have their answers.
 */
export async function openListeners(
  config: Config,
  listener: RequestListener,
  pending: PendingRequests,
  tcpListener: RequestListener = listener,
): Promise<Listeners> {
  await using undo = new AsyncDisposableStack();
  const hosts = config.hosts.map((text) => parseHost(text, config.tls));
  const open: string[] = [];
  for (const host of hosts) {
    if (host.kind === 'tcp')
      open.push(undo.use(await openTcp(config, host.address, host.port, tcpListener, pending)).host);
  }
  const passed = passedSockets();
  const wantsAll = hosts.some(({ kind }) => kind === 'passed');
  if (wantsAll && passed.length === 0) throw new EngineError('invalid', 'fd://: systemd has passed no sockets');
  const paths = hosts.flatMap((host) => (host.kind === 'unix' ? [host.path] : []));
  const taken = passed.filter(({ path }) => wantsAll || (path !== undefined && paths.includes(path)));
  for (const socket of taken) {
    const answering = socket.path === undefined ? tcpListener : listener;
    open.push(undo.use(await openPassed(config, socket, answering, pending)).host);
  }
  // A socket's file is created last, so that all are open when it appears.
  for (const host of hosts) {
    if (host.kind === 'unix' && !taken.some(({ path }) => path === host.path))
      open.push(undo.use(await openUnix(config, host.path, listener, pending)).host);
  }
  const parts = undo.move();
  return { hosts: open, [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
}

async function openTcp(
  config: Config,
  address: string,
  port: number,
  listener: RequestListener,
  pending: PendingRequests,
): Promise<Listening> {
  const server = config.tls ? createTlsServer(config) : createServer(SERVER_OPTIONS);
  const connections = serve(server, config.tls ? listener : overPlainTcp(listener), apiVersionsOf(config).max);
  server.listen({ host: address, port, backlog: longestQueue() });
  await listening(server);
  const host = tcpHost(server.address() as AddressInfo);
  return { host, [Symbol.asyncDispose]: async () => await closeServer(server, pending, connections) };
}

/**
 * Listens at a TCP address, with `tls` as the hosts of the configuration do. `listener` checks the origin of the requests
 * itself.
 */
export async function listenForPage(
  at: { host: string; port: number },
  listener: RequestListener,
  tls: Config | undefined,
): Promise<OpenServer> {
  const server = tls === undefined ? createServer(SERVER_OPTIONS) : createTlsServer(tls);
  const connections = serve(server, listener);
  server.listen({ ...at, exclusive: true });
  await listening(server);
  const { address: host, port } = server.address() as AddressInfo;
  return { server, connections, host, port };
}

/** Waits until a server listens. Throws `failed` with its address, which may be in use. */
async function listening(server: Server): Promise<void> {
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new EngineError('failed', `cannot listen: ${messageOf(error)}`, { cause: error });
  }
}

function tcpHost({ family, address, port }: AddressInfo): string {
  return `tcp://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

/** A socket of systemd, which listens already; systemd manages its file and owner. */
async function openPassed(
  config: Config,
  { fd, path, address = '' }: PassedSocket,
  listener: RequestListener,
  pending: PendingRequests,
): Promise<Listening> {
  const isPlainTcp = path === undefined && !config.tls;
  if (isPlainTcp && !config.insecureTcp && !isLoopback(address)) {
    throw new EngineError('invalid', `fd://: ${address} without TLS is for everyone; see --insecure-tcp`);
  }
  const server = path === undefined && config.tls ? createTlsServer(config) : createServer(SERVER_OPTIONS);
  const connections = serve(server, isPlainTcp ? overPlainTcp(listener) : listener, apiVersionsOf(config).max);
  server.listen({ fd, backlog: longestQueue() });
  await listening(server);
  const host = path === undefined ? tcpHost(server.address() as AddressInfo) : `unix://${path}`;
  return { host, [Symbol.asyncDispose]: async () => await closeServer(server, pending, connections) };
}

async function openUnix(
  config: Config,
  path: string,
  listener: RequestListener,
  pending: PendingRequests,
): Promise<Listening> {
  makeFolders(dirname(path), 0o755);
  const gid = config.group === '' ? undefined : groupId(config.group);
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === false) {
    throw new EngineError('conflict', `unix://${path}: the file is not a socket`);
  }
  if (await answers(path)) throw new EngineError('conflict', `unix://${path}: another daemon listens there`);
  rmSync(path, { force: true });
  const server = createServer(SERVER_OPTIONS);
  const connections = serve(server, listener, apiVersionsOf(config).max);
  server.listen({ path, backlog: longestQueue() });
  await listening(server);
  chmodSync(path, 0o660);
  if (gid !== undefined) chownSync(path, 0, gid);
  return {
    host: `unix://${path}`,
    [Symbol.asyncDispose]: async () => {
      rmSync(path, { force: true });
      await closeServer(server, pending, connections);
    },
  };
}

/**
 * How many clients may wait until a busy daemon accepts them: as many as the kernel allows, as in Go. Node's 511 is soon
 * reached, and on a unix socket the next client is refused with EAGAIN.
 */
function longestQueue(): number {
  return Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
}

/** Ends a server with its connections, including those that were taken over or had no request yet. */
export async function closeServer(
  server: Server,
  pending: PendingRequests,
  connections: Iterable<Socket>,
): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  await pending.answered(LAST_ANSWERS_TIMEOUT_SECONDS);
  for (const socket of connections) socket.destroy();
  await closed;
}

/** Whether a process accepts connections on an existing socket. */
async function answers(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ECONNREFUSED')) return false;
    throw error;
  } finally {
    socket.destroy();
  }
}

function createTlsServer(config: Config): Server {
  return createHttpsServer({ ...SERVER_OPTIONS, ...certificates(config) });
}

function certificates({ tlscacert, tlscert, tlskey, tlsverify }: Config): object {
  return {
    cert: readFileSync(tlscert),
    key: readFileSync(tlskey),
    ...(tlsverify && { ca: readFileSync(tlscacert), requestCert: true, rejectUnauthorized: true }),
  };
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';

import type { Logger } from 'pino';
import type { Static, TSchema } from 'typebox';

import { parseBoundedJson } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { NotLeader } from './client.ts';

/** The client, by its certificate. */
export type Peer = Readonly<{ id: string; role: 'worker' | 'manager' }>;
export type Identity = Readonly<{ certificate: string; key: string; root: string; clusterId: string }>;

/** `node`, `manager`: the certificate says so, and the record of the node agrees (`admits`). */
type Who = 'anyone' | 'node' | 'manager';
export type Route = Readonly<{
  who: Who;
  schema: TSchema;
  handle: (body: unknown, peer: Peer | undefined) => Promise<unknown>;
}>;
export type Routes = Readonly<Record<string, Route>>;

type Settings = Readonly<{
  ip: string;
  port: number;
  identity: Identity;
  routes: Routes;
  admits: (peer: Peer, who: 'node' | 'manager') => boolean;
  /** An upgraded connection of a node. Throws to refuse. */
  session: (peer: Peer, open: () => Duplex) => void;
  log: Logger;
}>;

const MAX_BODY_LENGTH = 1024 * 1024;
const STATUS: ReadonlyMap<string, number> = new Map(
  Object.entries({ invalid: 400, forbidden: 403, notFound: 404, conflict: 409 }),
);

/** Makes a route of a handler whose body has a schema. */
export function route<S extends TSchema>(
  who: Who,
  schema: S,
  handle: (body: Static<S>, peer: Peer | undefined) => Promise<unknown>,
): Route {
  return { who, schema, handle: handle as Route['handle'] };
}

/** Port 2377 of a manager: TLS 1.3, where a client without a certificate may only ask for one. */
export class WireServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #settings: Settings;
  readonly #sockets = new Set<Duplex>();
  #clusterId: string;

  private constructor(settings: Settings) {
    this.#settings = settings;
    this.#clusterId = settings.identity.clusterId;
    this.#server = createServer(
      {
        ...tlsOf(settings.identity),
        requestCert: true,
        rejectUnauthorized: false,
        minVersion: 'TLSv1.3',
        handshakeTimeout: 10_000,
      },
      (request, response) => {
        this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
      },
    );
    this.#server.on('connection', (socket: Duplex) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('upgrade', (request, socket) => this.#upgrade(request, socket));
  }

  /** Listens, or throws as the system refuses. */
  static async open(settings: Settings): Promise<WireServer> {
    const wire = new WireServer(settings);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    wire.#server.once('error', reject);
    wire.#server.listen({ host: settings.ip, port: settings.port, ipv6Only: false }, () => resolve());
    await promise;
    wire.#server.off('error', reject);
    wire.#server.on('error', (error) => settings.log.error({ err: error }, 'the port of the cluster has failed'));
    return wire;
  }

  /** Takes another certificate from the next connection on. */
  use(identity: Identity): void {
    this.#clusterId = identity.clusterId;
    this.#server.setSecureContext({ ...tlsOf(identity), minVersion: 'TLSv1.3' });
  }

  /** Ends all connections too. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    for (const socket of this.#sockets) socket.destroy();
    await promise;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined); // the client has gone
    try {
      const answer = await this.#handle(request);
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer ?? {}));
    } catch (error) {
      const { status, body } = refusalFor(error);
      if (status === 500 && !(error instanceof EngineError)) {
        this.#settings.log.error({ err: error, path: request.url }, 'a request of a node failed unexpectedly');
      }
      response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' }).end(JSON.stringify(body));
    }
  }

  async #handle(request: IncomingMessage): Promise<unknown> {
    const { routes } = this.#settings;
    const route = routes[`${request.method} ${request.url}`];
    if (route === undefined) throw new EngineError('notFound', 'page not found');
    const peer = this.#peerOf(request.socket as TLSSocket);
    this.#admit(route.who, peer);
    const body = request.method === 'GET' ? {} : await readJson(request);
    if (!lazyCheck(route.schema).Check(body)) throw new EngineError('invalid', 'the request is not understood');
    return await route.handle(body, peer);
  }

  #upgrade(request: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => socket.destroy());
    let isOpen = false;
    try {
      if (request.url !== '/v1/session') throw new EngineError('notFound', 'page not found');
      const peer = this.#peerOf(request.socket as TLSSocket);
      this.#admit('node', peer);
      this.#settings.session(peer!, () => {
        isOpen = true;
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: gantry-session\r\n\r\n');
        return socket;
      });
    } catch (error) {
      if (isOpen) throw error;
      const { status, body } = refusalFor(error);
      const text = JSON.stringify(body);
      socket.end(
        `HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
      );
    }
  }

  #admit(who: Who, peer: Peer | undefined): void {
    if (who === 'anyone') return;
    if (peer === undefined) throw new EngineError('forbidden', 'a certificate of this cluster is needed');
    if (!this.#settings.admits(peer, who)) throw new EngineError('forbidden', `${peer.id} may not do that here`);
  }

  /** Undefined without a certificate of this cluster that counts now. */
  #peerOf(socket: TLSSocket): Peer | undefined {
    if (!socket.authorized) return undefined;
    const { subject } = socket.getPeerCertificate();
    const { CN: id, OU: unit, O: cluster } = subject as unknown as Record<string, string>;
    if (cluster !== this.#clusterId || id === undefined) return undefined;
    if (unit === 'swarm-manager') return { id, role: 'manager' };
    return unit === 'swarm-worker' ? { id, role: 'worker' } : undefined;
  }
}

function tlsOf({ certificate, key, root }: Identity): { cert: string; key: string; ca: string } {
  return { cert: certificate, key, ca: root };
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY_LENGTH) throw new EngineError('invalid', 'the request is larger than 1 MB');
    chunks.push(chunk);
  }
  try {
    return parseBoundedJson(Buffer.concat(chunks).toString());
  } catch (error) {
    throw new EngineError('invalid', 'the request is not JSON', { cause: error });
  }
}

function refusalFor(error: unknown): { status: number; body: object } {
  if (error instanceof NotLeader) return { status: 421, body: { leader: error.leader ?? null } };
  if (error instanceof EngineError)
    return { status: STATUS.get(error.kind) ?? 500, body: { kind: error.kind, message: error.message } };
  return { status: 500, body: { kind: 'failed', message: messageOf(error) } };
}

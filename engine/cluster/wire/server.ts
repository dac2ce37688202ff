import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';

import type { Logger } from 'pino';
import type { Static, TSchema } from 'typebox';

import { parseBoundedJson } from '../../lib/bounded-json.ts';
import { readWhole } from '../../lib/bytes/read-whole.ts';
import type { Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { parseLine } from './channel.ts';
import { NotLeader } from './client.ts';
import { Connections } from './connections.ts';

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

/** A connection on which both sides talk from then on: `begin` throws to refuse, or calls `open`. */
export type Upgrade = Readonly<{
  who: 'node' | 'manager';
  schema: TSchema;
  begin: (request: unknown, peer: Peer, open: () => Duplex) => void;
}>;
export type Upgrades = Readonly<Record<string, Upgrade>>;

type Settings = Readonly<{
  ip: string;
  port: number;
  identity: Identity;
  routes: Routes;
  admits: (peer: Peer, who: 'node' | 'manager') => boolean;
  upgrades: Upgrades;
  clock: Clock;
  log: Logger;
}>;

/** Room for the largest config, encrypted and in base64. */
const MAX_BODY_KB = 1536;
/** Largest request of a stranger in KB: a key, a request for a certificate and a token. */
const MAX_STRANGER_BODY_KB = 16;
const MAX_UPGRADE_VALUES = 100;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Time to the end of a request's head and body, also for the first one of a connection. */
const REQUEST_TIMEOUT_MS = 10_000;
const TIMEOUT_CHECK_INTERVAL_MS = 1000;
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

/** Makes an upgrade whose request, JSON in the URL, has a schema. */
export function upgrade<S extends TSchema>(
  who: Upgrade['who'],
  schema: S,
  begin: (request: Static<S>, peer: Peer, open: () => Duplex) => void,
): Upgrade {
  return { who, schema, begin: begin as Upgrade['begin'] };
}

/** Port 2377 of a manager: TLS 1.3, where a client without a certificate may only ask for one. */
export class WireServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #settings: Settings;
  readonly #connections: Connections;
  /** Last answer, by connection. */
  readonly #answers = new WeakMap<Socket, ServerResponse>();
  #clusterId: string;

  private constructor(settings: Settings) {
    this.#settings = settings;
    this.#connections = new Connections(settings.clock);
    this.#clusterId = settings.identity.clusterId;
    this.#server = createServer(
      {
        ...tlsOf(settings.identity),
        requestCert: true,
        rejectUnauthorized: false,
        minVersion: 'TLSv1.3',
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
        headersTimeout: REQUEST_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
        pauseOnConnect: true,
      },
      (request, response) => {
        this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
      },
    );
    const [shakeHands] = this.#server.listeners('connection');
    this.#server.removeAllListeners('connection');
    this.#server.on('connection', (socket: Socket) => {
      this.#connections.accept(socket, () => shakeHands!.call(this.#server, socket));
    });
    this.#server.on('secureConnection', (socket) => this.#recognize(socket));
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
    this.#connections[Symbol.dispose]();
    await promise;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const socket = request.socket as TLSSocket;
    // No node sends a request before it has the answer to the last one.
    if (this.#answers.get(socket)?.writableEnded === false) return void socket.destroy();
    this.#answers.set(socket, response);
    response.on('error', () => undefined); // the client has gone
    try {
      const answer = await this.#handle(request);
      const last = this.#connections.isStranger(socket) ? { Connection: 'close' } : {};
      response.writeHead(200, { 'Content-Type': 'application/json', ...last }).end(JSON.stringify(answer ?? {}));
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
    const socket = request.socket as TLSSocket;
    const peer = this.#peerOf(socket);
    this.#admit(route.who, peer);
    this.#recognize(socket);
    const maxKb = this.#connections.isStranger(socket) ? MAX_STRANGER_BODY_KB : MAX_BODY_KB;
    const body = request.method === 'GET' ? {} : await readJson(request, maxKb);
    if (!lazyCheck(route.schema).Check(body)) throw new EngineError('invalid', 'the request is not understood');
    return await route.handle(body, peer);
  }

  #upgrade(request: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => socket.destroy());
    let isOpen = false;
    try {
      const url = URL.parse(request.url ?? '', 'https://manager');
      const { upgrades } = this.#settings;
      const upgrade = url !== null && Object.hasOwn(upgrades, url.pathname) ? upgrades[url.pathname] : undefined;
      if (url === null || upgrade === undefined) throw new EngineError('notFound', 'page not found');
      const connection = request.socket as TLSSocket;
      const peer = this.#peerOf(connection);
      this.#admit(upgrade.who, peer);
      this.#recognize(connection);
      const asked = parseLine(url.searchParams.get('request') ?? '{}', MAX_UPGRADE_VALUES);
      if (!lazyCheck(upgrade.schema).Check(asked)) throw new EngineError('invalid', 'the request is not understood');
      upgrade.begin(asked, peer!, () => {
        isOpen = true;
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: gantry-session\r\n\r\n');
        return socket;
      });
    } catch (error) {
      if (isOpen) throw error;
      const { status, body } = refusalFor(error);
      const text = JSON.stringify(body);
      const head = `HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(text)}`;
      socket.end(`${head}\r\n\r\n${text}`, () => socket.destroy()); // a client that does not hang up would keep it
    }
  }

  /** Lifts the limits of strangers where the certificate and the record of a node say so. */
  #recognize(socket: TLSSocket): void {
    const peer = this.#peerOf(socket);
    if (peer === undefined || !this.#settings.admits(peer, 'node')) return;
    this.#connections.recognize(socket, { id: peer.id, isManager: this.#settings.admits(peer, 'manager') });
  }

  #admit(who: Who, peer: Peer | undefined): void {
    if (who === 'anyone') return;
    if (peer === undefined) throw new EngineError('forbidden', 'a certificate of this cluster is needed');
    if (!this.#settings.admits(peer, who)) throw new EngineError('forbidden', `${peer.id} may not do that here`);
  }

  /** Undefined without a certificate of this cluster that counts now. */
  #peerOf(socket: TLSSocket): Peer | undefined {
    if (!socket.authorized) return undefined;
    const { subject, valid_from: from, valid_to: until } = socket.getPeerCertificate();
    const now = this.#settings.clock.now().epochMilliseconds;
    if (now < Date.parse(from) || now > Date.parse(until)) return undefined; // the connection may be older
    const { CN: id, OU: unit, O: cluster } = subject as unknown as Record<string, string>;
    if (cluster !== this.#clusterId || id === undefined) return undefined;
    if (unit === 'swarm-manager') return { id, role: 'manager' };
    return unit === 'swarm-worker' ? { id, role: 'worker' } : undefined;
  }
}

function tlsOf({ certificate, key, root }: Identity): { cert: string; key: string; ca: string } {
  return { cert: certificate, key, ca: root };
}

async function readJson(request: IncomingMessage, maxKb: number): Promise<unknown> {
  const bytes = await readWhole(request, maxKb * 1024);
  if (bytes === undefined) throw new EngineError('invalid', `the request is larger than ${maxKb} KB`);
  try {
    return parseBoundedJson(bytes.toString());
  } catch (error) {
    throw new EngineError('invalid', 'the request is not JSON', { cause: error });
  }
}

function refusalFor(error: unknown): { status: number; body: object } {
  if (error instanceof NotLeader) return { status: 421, body: { leader: error.leader ?? null } };
  if (error instanceof EngineError)
    return { status: STATUS.get(error.kind) ?? 500, body: { kind: error.kind, message: error.message } };
  return {
    status: 500,
    body: { kind: 'failed', message: 'the request failed unexpectedly: see the log of this manager' },
  };
}

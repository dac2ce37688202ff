import { EventEmitter, once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';

/** A request as it has arrived. */
export type Received = Readonly<{
  method: string;
  /** As the gateway wrote it, with its query. */
  url: string;
  headers: IncomingHttpHeaders;
  rawHeaders: readonly string[];
}>;

/** The request as the default answer repeats it. */
export type Echo = Readonly<{ method: string; url: string; body: string }>;

export type Answering = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Requests that get no answer until they are released. */
export type Held = Readonly<{
  /** How many have come and wait. */
  waiting(): number;
  /** Answers all that wait with 200, and from then on at once. */
  release(): void;
}>;

/**
 * The server behind a gateway: records what comes, answers 200 with what it was asked, or what a path is given.
 */
export class TestUpstream implements AsyncDisposable {
  readonly received: Received[] = [];
  /** Connections to it that are open. */
  readonly connections = new Set<Socket>();
  /** Handler of a request for another protocol; otherwise it is answered like others. */
  onUpgrade: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined;
  readonly #server: Server;
  readonly #answers = new Map<string, Answering>();
  readonly #events = new EventEmitter();

  private constructor() {
    // It closes no idle connection, perhaps at the moment at which the gateway sends a request on it.
    const options = { shouldUpgradeCallback: () => this.onUpgrade !== undefined, keepAliveTimeout: 0 };
    this.#server = createServer(options, (request, response) => this.#answer(request, response));
    this.#server.on('connection', (socket: Socket) => {
      this.connections.add(socket);
      socket.once('close', () => this.connections.delete(socket));
    });
    this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#record(request);
      this.onUpgrade?.(request, socket, head);
    });
  }

  static async start(): Promise<TestUpstream> {
    const upstream = new TestUpstream();
    upstream.#server.listen(0, '127.0.0.1');
    await once(upstream.#server, 'listening');
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Requests for this path, without its query, are answered in this way. */
  on(path: string, answer: Answering): void {
    this.#answers.set(path, answer);
  }

  /** Requests for this path wait until they are released. */
  hold(path: string): Held {
    const waiting: ServerResponse[] = [];
    let released = false;
    this.on(path, (request, response) => {
      request.resume();
      if (released) response.end('released');
      else waiting.push(response);
      response.once('close', () => {
        const at = waiting.indexOf(response);
        if (at >= 0) waiting.splice(at, 1);
        this.#events.emit('change');
      });
      this.#events.emit('change');
    });
    return {
      waiting: () => waiting.length,
      release: () => {
        released = true;
        for (const response of waiting.splice(0)) response.end('released');
      },
    };
  }

  /** Waits until this is true of what has come and what waits. */
  async until(reached: () => boolean): Promise<void> {
    while (!reached()) await once(this.#events, 'change', { signal: AbortSignal.timeout(120_000) });
  }

  /** How many requests for this path, with or without a query, have come. */
  count(path: string): number {
    return this.received.filter(({ url }) => url === path || url.startsWith(`${path}?`)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.connections) socket.destroy();
    await closed;
  }

  #record({ method = '', url = '', headers, rawHeaders }: IncomingMessage): void {
    this.received.push({ method, url, headers, rawHeaders });
    this.#events.emit('change');
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.#record(request);
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const answer = this.#answers.get(path) ?? echo;
    // A client that leaves in the middle of its body is part of many tests.
    Promise.resolve(answer(request, response)).catch(() => response.destroy());
  }
}

async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = (await buffer(request)).toString();
  const told: Echo = { method: request.method ?? '', url: request.url ?? '', body };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(told));
}

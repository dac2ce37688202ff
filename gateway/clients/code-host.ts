import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

const owner = { id: 1, login: 'ada', type: 'User' };
const repository = { id: 7, name: 'engine', full_name: 'ada/engine', private: false, owner };

type Answer = Readonly<{ status: number; body: unknown }>;

/**
 * A server that answers like a code host, as far as the clients ask: a user, a repository, its issues, a search, a
 * query of GraphQL. It knows no limits; what it has seen came through the gateway.
 */
export class CodeHost implements AsyncDisposable {
  /** Method and path of each request, in order. */
  readonly seen: string[] = [];
  readonly #server: Server;
  readonly #arrivals = new EventEmitter();
  #held: Promise<void> | undefined;
  #issues = 0;

  private constructor() {
    this.#server = createServer((req, res) => void this.#serve(req, res));
  }

  static async start(): Promise<CodeHost> {
    const host = new CodeHost();
    host.#server.listen(0, '127.0.0.1');
    await once(host.#server, 'listening');
    return host;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Lets requests wait for their answers until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return () => {
      this.#held = undefined;
      resolve();
    };
  }

  /** Waits until this number of requests has come. */
  async saw(count: number): Promise<void> {
    while (this.seen.length < count) await once(this.#arrivals, 'request');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const asked = `${req.method} ${req.url?.split('?', 1)[0]}`;
    this.seen.push(asked);
    this.#arrivals.emit('request');
    const { status, body } = this.#answer(asked, await text(req));
    await this.#held;
    res.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
    res.end(req.method === 'HEAD' ? undefined : JSON.stringify(body));
  }

  #answer(asked: string, sent: string): Answer {
    switch (asked) {
      case 'GET /user':
      case 'HEAD /user':
        return { status: 200, body: owner };
      case 'GET /repos/ada/engine':
        return { status: 200, body: { ...repository, url: `${this.url}/repos/ada/engine` } };
      case 'POST /repos/ada/engine/issues': {
        this.#issues += 1;
        const { title } = JSON.parse(sent) as { title: string };
        return {
          status: 201,
          body: { id: 100 + this.#issues, number: this.#issues, title, state: 'open', user: owner },
        };
      }
      case 'GET /search/repositories':
        return { status: 200, body: { total_count: 1, incomplete_results: false, items: [repository] } };
      case 'POST /graphql':
        return { status: 200, body: { data: { viewer: { login: owner.login } } } };
      default:
        return { status: 404, body: { message: 'Not Found' } };
    }
  }
}

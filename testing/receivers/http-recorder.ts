import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';

import { Arrivals } from './log-receivers.ts';

/** A request as it came; `text` is its body unpacked. */
export type Asked = Readonly<{ method: string; url: string; headers: IncomingHttpHeaders; body: Buffer; text: string }>;

type Answer = Readonly<{ status: number; body: string }>;

/** An HTTP server on the loopback that records requests and gives prepared answers. */
export class HttpRecorder implements AsyncDisposable {
  readonly #server: Server;
  readonly #arrivals = new Arrivals();
  readonly asked: Asked[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(
    answer: (asked: Asked) => Answer,
    { port = 0, tls }: { port?: number; tls?: ServerOptions } = {},
  ): Promise<HttpRecorder> {
    const server = tls === undefined ? createServer() : createTlsServer(tls);
    const made = new HttpRecorder(server);
    server.on('request', (request, response) => {
      void (async () => {
        const asked = await made.#record(request);
        const { status, body } = answer(asked);
        response.writeHead(status, { 'content-type': 'application/json' }).end(body);
        made.#arrivals.arrived();
      })();
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return made;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async until(isThere: (asked: readonly Asked[]) => boolean): Promise<void> {
    await this.#arrivals.until(
      () => isThere(this.asked),
      () => JSON.stringify(this.asked.slice(-5)).slice(0, 2000),
    );
  }

  async #record(request: IncomingMessage): Promise<Asked> {
    const { method = '', url = '', headers } = request;
    const body = await buffer(request);
    const text = (headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString();
    const asked = { method, url, headers, body, text };
    this.asked.push(asked);
    return asked;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

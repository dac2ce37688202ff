/** The smallest proxy with Node's own server and undici, as the baseline of the gateway's speed. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';

import { type Dispatcher, Pool } from 'undici';

const [port = '', upstream = ''] = process.argv.slice(2);
const pool = new Pool(upstream, { connections: 1024, pipelining: 1 });

class Passing implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    delete headers.connection;
    delete headers['keep-alive'];
    delete headers['transfer-encoding'];
    this.#response.writeHead(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(chunk)) return;
    controller.pause();
    this.#response.once('drain', () => controller.resume());
  }

  onResponseEnd(): void {
    this.#response.end();
  }

  onResponseError(): void {
    if (!this.#response.headersSent) this.#response.writeHead(502);
    this.#response.end();
  }
}

const server = createServer((request, response) => {
  const { method = 'GET', url = '/', headers } = request;
  const body = headers['content-length'] === undefined && headers['transfer-encoding'] === undefined ? null : request;
  delete headers.connection;
  delete headers['keep-alive'];
  delete headers['transfer-encoding'];
  pool.dispatch({ method, path: url, headers, body }, new Passing(response));
});
server.listen(Number(port), '127.0.0.1');

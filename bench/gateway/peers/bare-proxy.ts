/**
 * The smallest proxy with Node's own server and undici, as the baseline of the gateway's speed.
 *
 * With the path of a Redis's socket it has a script count each request there before it passes it on: no gateway that counts
 * in Redis can be faster than this, unless it asks for several requests at once.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';

import { connectionTo, eachSecond } from '@gantry/limiter/redis/links/connection.ts';
import { type Dispatcher, Pool } from 'undici';

const [port = '', upstream = '', redis] = process.argv.slice(2);
const count = redis === undefined ? undefined : await counting(redis);
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
  const pass = (): void => void pool.dispatch({ method, path: url, headers, body }, new Passing(response));
  if (count === undefined) pass();
  else count(headers.authorization ?? '').then(pass, () => response.writeHead(503).end());
});
server.listen(Number(port), '127.0.0.1');

/** Counts a key by a script, in the pipeline that the client makes of what is asked in one turn. */
async function counting(socketPath: string): Promise<(key: string) => Promise<unknown>> {
  const client = connectionTo(socketPath);
  await client.connect();
  eachSecond(() => void client.ping()); // a connection that is silent is given up
  const sha = await client.scriptLoad("return redis.call('INCR', KEYS[1])");
  return async (key) => await client.sendCommand(['EVALSHA', sha, '1', key]);
}

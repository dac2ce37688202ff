import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { parseMetricsAddress } from '../../config/hosts.ts';
import { overPlainTcp, refusalOf } from './origins.ts';

const TEXT = 'text/plain; charset=utf-8';
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** Where metrics are served: `address` with the kernel's choice for port 0. */
export type MetricsListener = AsyncDisposable & { readonly address: string };

/**
 * Serves `GET /metrics` at `address`, such as `127.0.0.1:9323`, to every client but pages of a browser. `metrics`
 * returns the text of Prometheus.
 */
export async function serveMetrics(address: string, metrics: () => string): Promise<MetricsListener> {
  const server = createServer(overPlainTcp((request, response) => answer(metrics, request, response)));
  server.listen(parseMetricsAddress(address));
  await once(server, 'listening');
  const bound = server.address() as AddressInfo;
  return {
    address: `${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function answer(metrics: () => string, request: IncomingMessage, response: ServerResponse): void {
  const end = (status: number, type: string, text: string): void => {
    response.writeHead(status, { 'content-type': type });
    response.end(request.method === 'HEAD' ? undefined : text);
  };
  const refusal = refusalOf(request, '');
  if (refusal !== undefined) end(refusal.kind === 'forbidden' ? 403 : 400, TEXT, `${refusal.message}\n`);
  else if (request.url?.split('?')[0] !== '/metrics') end(404, TEXT, '404 page not found\n');
  else if (request.method !== 'GET' && request.method !== 'HEAD') end(405, TEXT, 'Method Not Allowed\n');
  else end(200, PROMETHEUS_TEXT, metrics());
}

import { type IncomingMessage, request as requestByHttp } from 'node:http';
import { request as requestByHttps } from 'node:https';
import type { Socket } from 'node:net';

import { countAnswer } from '../metrics.ts';
import { answerMessage } from './answer.ts';
import type { Exchange } from './exchange.ts';
import { pushRateHeaders, requestHeaders, responseHeaders } from './headers.ts';

type Upgrade = NonNullable<Exchange['upgrade']>;

/**
 * Passes a request for another protocol (WebSocket) on, and joins the two connections when the upstream agrees.
 *
 * It counts as under way until the connections end; of the upstream's time only that until its answer is charged.
 */
export function forwardUpgrade(exchange: Exchange, upgrade: Upgrade): void {
  const { req, res, gateway, target } = exchange;
  const { origin, timeouts } = gateway.upstream;
  const dispatchedAt = performance.now();
  const headers = requestHeaders(exchange);
  headers.push('connection', 'upgrade', 'upgrade', req.headers.upgrade ?? '');
  const request = origin.protocol === 'https:' ? requestByHttps : requestByHttp;
  const outgoing = request({
    host: origin.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: origin.port,
    servername: origin.hostname,
    path: target.path + target.query,
    method: req.method,
    headers,
    agent: false,
    timeout: timeouts.upstreamHeadersMs,
  });
  let answered = false;
  const charge = (): number => (performance.now() - dispatchedAt) / 1000;
  let answerSeconds: number | undefined;
  exchange.whenClosed = () => {
    exchange.decision?.end(answerSeconds ?? charge());
    outgoing.destroy();
  };
  outgoing.once('upgrade', (incoming, upstreamSocket: Socket, head) => {
    answered = true;
    gateway.counts.upgrades += 1;
    countAnswer(gateway.counts.upstreamAnswers, 101);
    res.detachSocket(upgrade.socket);
    upgrade.socket.write(switchingHead(incoming, exchange));
    if (head.length > 0) upgrade.socket.write(head);
    if (upgrade.head.length > 0) upstreamSocket.write(upgrade.head);
    answerSeconds = charge();
    join(upgrade.socket, upstreamSocket, timeouts.upgradedIdleMs);
  });
  outgoing.once('response', (incoming) => {
    answered = true;
    passDeclined(exchange, incoming, charge);
  });
  outgoing.once('timeout', () => outgoing.destroy(new Error('the upstream did not answer the upgrade')));
  outgoing.once('error', (error) => {
    if (answered || upgrade.socket.destroyed) return;
    gateway.counts.upstreamFailures.broken += 1;
    gateway.log.failure('upstream', error);
    answerMessage(exchange, 502, 'The upstream server cannot be reached.');
  });
  outgoing.end();
}

function switchingHead(incoming: IncomingMessage, { decision }: Exchange): string {
  const headers: string[] = [];
  for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
    const name = incoming.rawHeaders[at]!;
    if (!name.toLowerCase().startsWith('x-ratelimit-')) headers.push(name, incoming.rawHeaders[at + 1]!);
  }
  if (decision !== undefined) pushRateHeaders(headers, decision);
  let head = `HTTP/1.1 101 ${incoming.statusMessage ?? 'Switching Protocols'}\r\n`;
  for (let at = 0; at < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`;
  return `${head}\r\n`;
}

/** The upstream answers with something else than 101: that is the answer. */
function passDeclined(exchange: Exchange, incoming: IncomingMessage, charge: () => number): void {
  const { res, decision, gateway } = exchange;
  const headers = responseHeaders(incoming.headers, decision);
  headers.push('connection', 'close');
  res.writeHead(incoming.statusCode ?? 502, incoming.statusMessage ?? '', headers);
  incoming.pipe(res);
  incoming.once('error', () => res.destroy());
  incoming.once('close', () => {
    countAnswer(gateway.counts.upstreamAnswers, incoming.statusCode ?? 502);
    decision?.end(charge());
  });
}

/** What has not moved on after one side has said its last word is not waited for longer than this. */
const HALF_CLOSED_MS = 2000;

function join(client: Socket, upstream: Socket, idleMs: number): void {
  client.setTimeout(idleMs);
  client.once('timeout', () => client.destroy());
  client.pipe(upstream);
  upstream.pipe(client);
  // One side that is gone ends the other; an error is an end like any other.
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.once('error', () => other.destroy());
    one.once('close', () => other.destroy());
    // The other one may still have something to say, but a peer that has gone for good looks just the same.
    one.once('end', () => {
      other.setTimeout(HALF_CLOSED_MS);
      other.once('timeout', () => other.destroy());
    });
  }
}

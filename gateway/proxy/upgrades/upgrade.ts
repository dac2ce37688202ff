import { type ClientRequest, type IncomingMessage, request as requestByHttp } from 'node:http';
import { request as requestByHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { countAnswer, countSeconds } from '../../metrics.ts';
import { answerMessage } from '../answer.ts';
import type { Exchange } from '../exchange.ts';
import { answerNoServer } from '../forward.ts';
import { settleCost } from '../headers/answer-cost.ts';
import { isAboutLimits, pushRateHeaders, requestHeaders, responseHeaders } from '../headers/headers.ts';
import type { UpstreamServer } from '../upstreams/upstream-server.ts';
import { isMetered, MeteredMessages } from './graphql-socket.ts';
import { InsertingMessages } from './websocket-frames.ts';

type Upgrade = NonNullable<Exchange['upgrade']>;

/** Bytes that a client may send before the upstream has agreed to the upgrade; more has to wait. */
const MAX_EARLY_BYTES = 65_536;

/**
 * Forwards an upgrade request (WebSocket), and connects client and upstream when the upstream agrees.
 *
 * It counts as under way until the connections end. Only the time until the upstream's answer is charged.
 */
export function forwardUpgrade(exchange: Exchange, { socket, head }: Upgrade): void {
  const { gateway } = exchange;
  const { timeouts } = gateway.upstream;
  const server = gateway.upstream.choose();
  if (server === undefined) return answerNoServer(exchange);
  const dispatchedAt = performance.now();
  if (exchange.decision?.allowed === true) exchange.decision.begin();
  const early = new EarlyBytes(socket, head);
  const outgoing = upgradeRequest(exchange, server);
  server.underWay += 1;
  outgoing.once('close', () => (server.underWay -= 1));
  let over = false;
  /** The upstream has answered or failed. The time until here is charged, whatever happens later. */
  const answered = (): void => {
    if (over) return;
    over = true;
    countSeconds(gateway.counts, (performance.now() - dispatchedAt) / 1000);
    if (exchange.decision?.allowed === true) exchange.decision.stop();
    clearTimeout(timer);
  };
  const timer = setTimeout(() => outgoing.destroy(new LateAnswer()), timeouts.upstreamHeadersMs);
  const clientClosed = (): void => {
    if (!over) gateway.counts.clientsGone += 1;
    answered();
    exchange.decision?.end(0); // does nothing after an earlier end
    outgoing.destroy();
  };
  exchange.whenClosed = { clientClosed };
  outgoing.once('upgrade', (incoming, upstreamSocket: Socket, first) => {
    answered();
    gateway.counts.upgrades += 1;
    countAnswer(gateway.counts.upstreamAnswers, 101);
    exchange.whenClosed = { clientClosed: () => exchange.decision?.end(0) };
    exchange.res.detachSocket(socket);
    socket.write(switchingHead(incoming, exchange), 'latin1');
    const meter = isMetered(exchange) ? meterFor(exchange, socket) : undefined;
    if (first.length > 0) (meter?.toClient ?? socket).write(first);
    early.passTo(meter?.toUpstream ?? upstreamSocket);
    join(socket, upstreamSocket, meter);
  });
  outgoing.once('response', (incoming) => {
    answered();
    passDeclined(exchange, incoming);
  });
  outgoing.once('error', (error) => {
    if (over || exchange.closed) return;
    answered();
    const late = error instanceof LateAnswer;
    gateway.counts.upstreamFailures[late ? 'timeout' : 'broken'] += 1;
    gateway.log.failure('upstream', error);
    if (late) answerMessage(exchange, 504, 'The upstream server did not answer in time.');
    else answerMessage(exchange, 502, 'The upstream server cannot be reached.');
  });
  outgoing.end();
}

class LateAnswer extends Error {
  constructor() {
    super('the upstream did not answer the upgrade in time');
  }
}

function upgradeRequest(exchange: Exchange, { address }: UpstreamServer): ClientRequest {
  const { req, target } = exchange;
  const { origin, socketPath, prefix } = address;
  const headers = isMetered(exchange) ? withoutExtensions(requestHeaders(exchange)) : requestHeaders(exchange);
  headers.push('connection', 'upgrade', 'upgrade', req.headers.upgrade ?? '');
  const request = origin.protocol === 'https:' ? requestByHttps : requestByHttp;
  return request({
    host: origin.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: origin.port,
    servername: origin.hostname,
    ...(socketPath === undefined ? {} : { socketPath }),
    path: prefix + target.path + target.query,
    method: req.method,
    headers,
    agent: false,
  });
}

/** Compressed messages cannot be read, so the extension is not offered. */
function withoutExtensions(headers: readonly string[]): string[] {
  return headers.filter((_, at) => headers[at - (at % 2)]!.toLowerCase() !== 'sec-websocket-extensions');
}

/** Keeps reading while the upstream is asked, because only a socket that is read reports that the client has gone. */
class EarlyBytes {
  readonly #socket: Socket;
  readonly #pieces: Buffer[];
  #size: number;
  readonly #onData = (piece: Buffer): void => {
    this.#pieces.push(piece);
    this.#size += piece.length;
    if (this.#size > MAX_EARLY_BYTES) this.#socket.pause();
  };
  readonly #onEnd = (): void => void this.#socket.destroy();

  constructor(socket: Socket, head: Buffer) {
    this.#socket = socket;
    this.#pieces = [head];
    this.#size = head.length;
    socket.on('data', this.#onData);
    socket.once('end', this.#onEnd);
  }

  passTo(upstream: Duplex): void {
    this.#socket.off('data', this.#onData).off('end', this.#onEnd);
    for (const piece of this.#pieces) if (piece.length > 0) upstream.write(piece);
  }
}

function switchingHead(incoming: IncomingMessage, { decision, shown = decision }: Exchange): string {
  const headers: string[] = [];
  for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
    const name = incoming.rawHeaders[at]!;
    if (!isAboutLimits(name.toLowerCase())) headers.push(name, incoming.rawHeaders[at + 1]!);
  }
  if (shown !== undefined) pushRateHeaders(headers, shown);
  let head = `HTTP/1.1 101 ${incoming.statusMessage ?? 'Switching Protocols'}\r\n`;
  for (let at = 0; at < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`;
  return `${head}\r\n`;
}

/** The upstream declines the upgrade: its answer is forwarded. */
function passDeclined(exchange: Exchange, incoming: IncomingMessage): void {
  const { res, decision, gateway } = exchange;
  settleCost(exchange, incoming.statusCode ?? 502, incoming.headers);
  const headers = responseHeaders(incoming.statusCode ?? 502, incoming.headers, exchange);
  headers.push('connection', 'close');
  res.writeHead(incoming.statusCode ?? 502, headers);
  incoming.pipe(res);
  incoming.once('error', () => res.destroy());
  incoming.once('close', () => {
    countAnswer(gateway.counts.upstreamAnswers, incoming.statusCode ?? 502);
    decision?.end(0);
  });
}

/** After one side has ended, the other one is closed when nothing was sent for this long. */
const HALF_CLOSED_MS = 2000;

/** Bytes buffered between the two connections, in each direction. */
type Meter = Readonly<{ toUpstream: Duplex; toClient: Duplex }>;

function meterFor(exchange: Exchange, client: Socket): Meter {
  const toClient = new InsertingMessages();
  const toUpstream = new MeteredMessages(exchange, toClient);
  for (const stream of [toClient, toUpstream]) {
    stream.on('error', () => client.destroy());
    client.once('close', () => stream.destroy());
  }
  toUpstream.once('close', () => {
    if (!toUpstream.readableEnded) client.destroy(); // it has given up
  });
  return { toUpstream, toClient };
}

function join(client: Socket, upstream: Socket, meter: Meter | undefined): void {
  client.setTimeout(0); // a watcher or a shell may be silent for days
  if (meter === undefined) {
    client.pipe(upstream);
    upstream.pipe(client);
  } else {
    client.pipe(meter.toUpstream).pipe(upstream);
    upstream.pipe(meter.toClient).pipe(client);
  }
  // When one side closes, the other one is closed too. An error counts as a close.
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.once('error', () => other.destroy());
    one.once('close', () => other.destroy());
    // The other side may still send, but a peer that is gone looks the same.
    one.once('end', () => {
      other.setTimeout(HALF_CLOSED_MS);
      other.once('timeout', () => other.destroy());
    });
  }
}

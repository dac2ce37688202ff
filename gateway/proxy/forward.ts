import type { IncomingHttpHeaders } from 'node:http';

import type { Dispatcher } from 'undici';
import { errors } from 'undici';

import { countAnswer, countSeconds } from '../metrics.ts';
import { answerBug, answerMessage } from './answer.ts';
import { MAX_HELD_BYTES } from './bodies/await-body.ts';
import type { HeldBody } from './bodies/held-body.ts';
import { RequestBody } from './bodies/request-body.ts';
import type { Exchange } from './exchange.ts';
import { settleCost } from './headers/answer-cost.ts';
import { requestHeaders, responseHeaders, responseTrailers } from './headers/headers.ts';
import type { Transfer } from './upstream-slots.ts';
import type { Upstream } from './upstream.ts';
import type { UpstreamServer } from './upstreams/upstream-server.ts';

/** An answer up to this size is buffered until its end, so that head and body are written at once. */
const SMALL_BYTES = 16_384;

/** undici decodes others as UTF-8, and then the original bytes are lost. */
const REASON = /^[\x20-\x7e]+$/;

/** Methods that may be sent again when the upstream closed an idle connection without an answer. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Forwards an admitted request when a connection to the upstream is free, and streams the answer back. */
export function forward(exchange: Exchange, body: HeldBody | undefined): void {
  const { gateway, caller } = exchange;
  const { upstream } = gateway;
  const { slots, timeouts } = upstream;
  if (slots.take()) return dispatch(exchange, upstream, body, timeouts.upstreamHeadersMs);
  const giveUp = slots.wait(caller.key, {
    granted: (waitedMs) => {
      try {
        dispatch(exchange, upstream, body, Math.max(1, timeouts.upstreamHeadersMs - waitedMs));
      } catch (error) {
        answerBug(exchange, error);
      }
    },
    failed: (reason) => {
      gateway.counts.upstreamFailures.busy += 1;
      gateway.log.failure('upstream', new Error('all connections to the upstream are taken'));
      exchange.whenClosed = undefined;
      if (reason === 'late') answerMessage(exchange, 504, 'The upstream server did not answer in time.');
      else answerMessage(exchange, 503, 'Too many requests wait for the upstream server.', ['retry-after', '1']);
    },
  });
  if (exchange.res.headersSent) return;
  exchange.whenClosed = {
    clientClosed: () => {
      gateway.counts.clientsGone += 1;
      giveUp();
    },
  };
}

function dispatch(exchange: Exchange, upstream: Upstream, body: HeldBody | undefined, headersTimeout: number): void {
  const { req, target } = exchange;
  const server = upstream.choose();
  if (server === undefined) {
    upstream.slots.give();
    return answerNoServer(exchange);
  }
  const forwarding = new Forwarding(exchange, upstream, server);
  const options: Dispatcher.DispatchOptions = {
    path: server.address.prefix + target.path + target.query,
    method: req.method ?? 'GET',
    headers: requestHeaders(exchange),
    body: body === undefined ? null : forwarding.bodyFrom(body),
    headersTimeout,
  };
  forwarding.begin(options);
}

/** All health checks have failed. */
export function answerNoServer(exchange: Exchange): void {
  const { counts, log } = exchange.gateway;
  counts.upstreamFailures.connect += 1;
  log.failure('upstream', new Error('the health check of every upstream server has failed'));
  answerMessage(exchange, 503, 'No upstream server is available.', ['retry-after', '1']);
}

class Forwarding implements Dispatcher.DispatchHandler, Transfer {
  readonly #exchange: Exchange;
  readonly #upstream: Upstream;
  readonly #dispatchedAt = performance.now();
  #server: UpstreamServer;
  /** Servers that took no connection. */
  #tried: UpstreamServer[] | undefined;
  #options: Dispatcher.DispatchOptions | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #repeatable = false;
  #status = 0;
  /** The Content-Length of the upstream, or -1. */
  #length = -1;
  /** The whole body, when it arrived in one chunk. */
  #whole: Buffer | undefined;
  #begun = false;
  #over = false;
  /** Bytes of the answer that are kept for a slow client. */
  #held = 0;
  /** The answer waits until the client has read what is kept. */
  #isPaused = false;
  #drainAwaited = false;
  isHeldUp = false;

  constructor(exchange: Exchange, upstream: Upstream, server: UpstreamServer) {
    this.#exchange = exchange;
    this.#upstream = upstream;
    this.#server = server;
    server.underWay += 1;
  }

  begin(options: Dispatcher.DispatchOptions): void {
    const exchange = this.#exchange;
    this.#options = options;
    this.#repeatable = options.body === null && REPEATABLE.has(options.method);
    exchange.whenClosed = this;
    exchange.isDispatched = true;
    if (exchange.decision?.allowed === true) exchange.decision.begin();
    this.#server.pool.dispatch(options, this);
  }

  /** The body as it is sent: in one piece where it is whole and in memory. */
  bodyFrom(body: HeldBody): Buffer | RequestBody {
    if (body.isWhole && body.isInMemory) {
      const { buffer } = body;
      body[Symbol.dispose]();
      return buffer;
    }
    const upload = new RequestBody(this.#exchange.req, body, (waits) => {
      if (this.#status === 0) this.#setHeldUp(waits);
    });
    this.#exchange.upload = upload;
    return upload;
  }

  get movedBytes(): number {
    const { bytesRead, bytesWritten } = this.#exchange.connection.socket;
    return bytesRead + bytesWritten;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) controller.abort(clientGone);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText?: string,
  ): void {
    this.#repeatable = false;
    if (status < 200) return; // only the upstream's direct peer is meant
    this.#status = status;
    this.#setHeldUp(false); // the client may still send, but its answer has begun
    this.#length = Number(headers['content-length'] ?? -1);
    const { res, gateway, connection } = this.#exchange;
    if (res.destroyed) return;
    const coding = headers['transfer-encoding'];
    if (coding !== undefined && coding !== 'chunked') throw new Error(`the upstream answers in coding ${coding}`);
    settleCost(this.#exchange, status, headers);
    const passed = responseHeaders(status, headers, this.#exchange);
    if (gateway.draining || connection.ending) passed.push('connection', 'close');
    if (statusText === undefined || !REASON.test(statusText)) res.writeHead(status, passed);
    else res.writeHead(status, statusText, passed);
    flushSoon(this);
  }

  /** The body did not arrive together with the head, so the head is sent now. */
  flushHead(): void {
    const { res } = this.#exchange;
    if (!this.#begun && !this.#over && !res.destroyed) res.flushHeaders();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (chunk.length === this.#length && chunk.length <= SMALL_BYTES) {
      this.#whole = chunk;
      return;
    }
    const { res } = this.#exchange;
    this.#begun = true;
    if (res.write(chunk)) return;
    if (!this.#drainAwaited) res.once('drain', this.#drained);
    this.#drainAwaited = true;
    if (this.#keep(res.writableLength)) return;
    this.#isPaused = true;
    controller.pause();
    this.#setHeldUp(true);
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    const { res, gateway } = this.#exchange;
    countAnswer(gateway.counts.upstreamAnswers, this.#status);
    this.#finish();
    const passed = responseTrailers(trailers);
    if (Object.keys(passed).length > 0) res.addTrailers(passed);
    // With a string, Node writes head and body together; with a buffer it needs two.
    if (this.#whole === undefined) res.end();
    else res.end(this.#whole.toString('latin1'), 'latin1');
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const { res, gateway } = this.#exchange;
    if (this.#over) return;
    if (this.#repeatable && connectionWasLost(error)) {
      this.#repeatable = false;
      this.#server.pool.dispatch(this.#options!, this);
      return;
    }
    if (wasNotConnected(error) && this.#goElsewhere(error)) return;
    this.#finish();
    const failure = failureOf(error);
    gateway.counts.upstreamFailures[failure] += 1;
    gateway.log.failure('upstream', error);
    if (res.headersSent) {
      res.destroy(); // a length that is not reached, or a missing chunk: the client sees that the answer is incomplete
      return;
    }
    if (failure === 'timeout') answerMessage(this.#exchange, 504, 'The upstream server did not answer in time.');
    else answerMessage(this.#exchange, 502, 'The upstream server cannot be reached.');
  }

  /** Sends it to another server: this one has seen nothing of it. Returns false if there is none. */
  #goElsewhere(error: Error): boolean {
    this.#server.noteFailure();
    if (this.#exchange.upload !== undefined) return false; // a body that is streamed is gone
    this.#tried = [...(this.#tried ?? []), this.#server];
    const next = this.#upstream.choose(this.#tried);
    if (next === undefined) return false;
    const { target, gateway } = this.#exchange;
    gateway.counts.upstreamFailures.connect += 1;
    gateway.log.failure('upstream', error);
    this.#server.underWay -= 1;
    this.#server = next;
    next.underWay += 1;
    next.pool.dispatch({ ...this.#options!, path: next.address.prefix + target.path + target.query }, this);
    return true;
  }

  clientClosed(): void {
    const { gateway } = this.#exchange;
    gateway.heldBytes.release(this.#held);
    this.#held = 0;
    if (this.#over) return;
    gateway.counts.clientsGone += 1;
    this.#finish();
    this.#controller?.abort(clientGone);
  }

  endSlow(): void {
    const { res, gateway } = this.#exchange;
    gateway.counts.slowClients += 1;
    if (this.#status > 0) {
      res.destroy();
      return;
    }
    this.#finish();
    this.#controller?.abort(clientGone);
    this.#exchange.connection.ending = true;
    answerMessage(this.#exchange, 408, 'The request is sent too slowly while others wait.');
  }

  /** Keeps this much of the answer for the client. Returns false when the client has to read first. */
  #keep(bytes: number): boolean {
    if (bytes > MAX_HELD_BYTES) return false;
    const more = Math.max(0, bytes - this.#held);
    if (!this.#exchange.gateway.heldBytes.reserve(more)) return false;
    this.#held += more;
    return true;
  }

  readonly #drained = (): void => {
    this.#drainAwaited = false;
    this.#exchange.gateway.heldBytes.release(this.#held);
    this.#held = 0;
    if (!this.#isPaused || this.#over) return;
    this.#isPaused = false;
    this.#setHeldUp(false);
    this.#controller?.resume();
  };

  /** The upstream waits for the client: that is no CPU time. */
  #setHeldUp(isHeldUp: boolean): void {
    if (this.#over || isHeldUp === this.isHeldUp) return;
    this.isHeldUp = isHeldUp;
    const { decision } = this.#exchange;
    if (isHeldUp) this.#upstream.slots.watch(this);
    if (decision?.allowed !== true) return;
    if (isHeldUp) decision.pause();
    else decision.begin();
  }

  /** The upstream is done. The request keeps its place until the client has its answer. */
  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    const { decision, gateway } = this.#exchange;
    if (decision?.allowed === true) decision.pause();
    countSeconds(gateway.counts, (performance.now() - this.#dispatchedAt) / 1000);
    this.#server.underWay -= 1;
    this.#upstream.slots.unwatch(this);
    this.#upstream.slots.give();
  }
}

/** Heads that arrived in this turn of the event loop. */
let heads: Forwarding[] = [];

function flushSoon(forwarding: Forwarding): void {
  heads.push(forwarding);
  if (heads.length > 1) return;
  setImmediate(flushHeads);
}

function flushHeads(): void {
  const waiting = heads;
  heads = [];
  for (const one of waiting) one.flushHead();
}

function connectionWasLost(error: Error): boolean {
  return error instanceof errors.SocketError || ('code' in error && LOST.has(String(error.code)));
}

const LOST = new Set(['ECONNRESET', 'EPIPE']);

/** Nothing was sent, so that any request may go to another server. */
function wasNotConnected(error: Error): boolean {
  return error instanceof errors.ConnectTimeoutError || failureOf(error) === 'connect';
}

const clientGone = new Error('the client has closed its connection');

function failureOf(error: Error): 'connect' | 'timeout' | 'broken' {
  if (error instanceof errors.ConnectTimeoutError) return 'timeout';
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) return 'timeout';
  return 'code' in error &&
    ['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT'].includes(String(error.code))
    ? 'connect'
    : 'broken';
}

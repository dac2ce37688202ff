import type { IncomingHttpHeaders } from 'node:http';

import type { Dispatcher } from 'undici';
import { errors } from 'undici';

import { countAnswer, countSeconds } from '../metrics.ts';
import { answerMessage } from './answer.ts';
import type { Exchange } from './exchange.ts';
import { requestHeaders, responseHeaders, responseTrailers } from './headers.ts';
import type { RequestBody } from './request-body.ts';

/** The request's body: none, already read, or still arriving. */
export type Body = Buffer | RequestBody | null;

/** An answer up to this size is buffered until its end, so that head and body are written at once. */
const SMALL_BYTES = 16_384;

/** undici decodes others as UTF-8, and then the original bytes are lost. */
const REASON = /^[\x20-\x7e]+$/;

/** Methods that may be sent again when the upstream closed an idle connection without an answer. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Forwards an admitted request, and streams the answer back. */
export function forward(exchange: Exchange, body: Body): void {
  const { req, target, gateway } = exchange;
  const options: Dispatcher.DispatchOptions = {
    path: target.path + target.query,
    method: req.method ?? 'GET',
    headers: requestHeaders(exchange),
    body,
  };
  gateway.upstream.pool.dispatch(options, new Forwarding(exchange, options));
}

class Forwarding implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange;
  readonly #options: Dispatcher.DispatchOptions;
  readonly #dispatchedAt = performance.now();
  #controller: Dispatcher.DispatchController | undefined;
  #repeatable: boolean;
  #status = 0;
  /** The Content-Length of the upstream, or -1. */
  #length = -1;
  /** The whole body, when it arrived in one chunk. */
  #whole: Buffer | undefined;
  #begun = false;
  #over = false;

  constructor(exchange: Exchange, options: Dispatcher.DispatchOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.#repeatable = options.body === null && REPEATABLE.has(options.method);
    exchange.whenClosed = this;
    if (exchange.decision?.allowed === true) exchange.decision.begin();
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
    this.#length = Number(headers['content-length'] ?? -1);
    const { res, gateway, connection } = this.#exchange;
    if (res.destroyed) return;
    const coding = headers['transfer-encoding'];
    if (coding !== undefined && coding !== 'chunked') throw new Error(`the upstream answers in coding ${coding}`);
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
    controller.pause();
    res.once('drain', () => controller.resume());
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
      gateway.upstream.pool.dispatch(this.#options, this);
      return;
    }
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

  clientClosed(): void {
    if (this.#over) return;
    this.#exchange.gateway.counts.clientsGone += 1;
    this.#finish();
    this.#controller?.abort(clientGone);
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#exchange.decision?.end();
    countSeconds(this.#exchange.gateway.counts, (performance.now() - this.#dispatchedAt) / 1000);
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

const clientGone = new Error('the client has closed its connection');

function failureOf(error: Error): 'connect' | 'timeout' | 'broken' {
  if (error instanceof errors.ConnectTimeoutError) return 'timeout';
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) return 'timeout';
  return 'code' in error &&
    ['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT'].includes(String(error.code))
    ? 'connect'
    : 'broken';
}

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

import type { Exchange } from './exchange.ts';
import { hasBody } from './headers.ts';

/** The body of a request for the upstream; `before` is what was read of it already. */
export function bodyOf(exchange: Exchange, before: readonly Buffer[] = []): RequestBody | null {
  if (!hasBody(exchange.req)) return null;
  exchange.body = new RequestBody(exchange.req, before);
  return exchange.body;
}

/**
 * What a client sends, on its way to the upstream.
 *
 * undici destroys the body that it is given when the upstream answers early or fails. The client's connection must
 * outlive that: what still comes on it is then read and thrown away, so that the answer arrives.
 */
export class RequestBody extends Readable {
  readonly #req: IncomingMessage;
  readonly #onData = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#req.pause();
  };
  readonly #onEnd = (): void => void this.push(null);

  constructor(req: IncomingMessage, before: readonly Buffer[]) {
    super();
    this.#req = req;
    for (const chunk of before) this.push(chunk);
    req.pause();
    req.on('data', this.#onData);
    req.once('end', this.#onEnd);
  }

  override _read(): void {
    this.#req.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#req.off('data', this.#onData).off('end', this.#onEnd);
    this.#req.resume();
    done(error);
  }
}

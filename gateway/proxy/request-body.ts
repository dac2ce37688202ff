import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

import type { Exchange } from './exchange.ts';
import { hasBody } from './headers.ts';

/** The body of a request for the upstream. `before`: the part that was read already. */
export function bodyOf(exchange: Exchange, before: readonly Buffer[] = []): RequestBody | null {
  if (!hasBody(exchange.req)) return null;
  exchange.body = new RequestBody(exchange.req, before);
  return exchange.body;
}

/**
 * A request's body on its way to the upstream.
 *
 * undici destroys the body when the upstream answers early or fails. The client's connection must
 * outlive that: the rest of the body is then read and discarded, so that the client receives the answer.
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

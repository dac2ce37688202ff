import type { Duplex } from 'node:stream';

import type { Static, TSchema } from 'typebox';

import { lazyCheck } from '../../lib/lazy-check.ts';

const MAX_LINE_LENGTH = 8 * 1024 * 1024;

/** JSON lines over a connection, both ways; a line that does not fit the schema ends it. */
export class Channel<S extends TSchema, Out> implements Disposable {
  /** Resolves when the connection is over, whoever ended it. */
  readonly closed: Promise<void>;
  readonly #socket: Duplex;
  #rest = '';

  constructor(socket: Duplex, schema: S, receive: (message: Static<S>) => void) {
    this.#socket = socket;
    const check = lazyCheck(schema);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.on('error', () => undefined); // 'close' follows
    socket.once('close', () => resolve());
    socket.once('end', () => socket.destroy());
    const decoder = new TextDecoder();
    socket.on('data', (chunk: Buffer) => {
      const parts = (this.#rest + decoder.decode(chunk, { stream: true })).split('\n');
      this.#rest = parts.pop()!;
      if (this.#rest.length > MAX_LINE_LENGTH) socket.destroy();
      for (const part of parts) {
        const message = parsed(part);
        if (socket.destroyed) return;
        if (check.Check(message)) receive(message);
        else socket.destroy();
      }
    });
  }

  send(message: Out): void {
    if (!this.#socket.destroyed) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

import type { Duplex } from 'node:stream';

import type { Static, TSchema } from 'typebox';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';

const MAX_LINE_LETTERS = 8 * 1024 * 1024;
/** A node gets all of its tasks in one message. */
const MAX_VALUES = 1_000_000;
/** Bytes that the other side has not read yet, besides one message: it may have all tasks. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
const MAX_REASON_LETTERS = 300;

type Handlers<S extends TSchema> = Readonly<{
  receive: (message: Static<S>) => void;
  /** Called where the other side breaks the protocol, which ends the connection. */
  refused?: (reason: string) => void;
}>;

/**
 * JSON lines over a connection, both ways. `schema` is a union of messages by their field `say`; a line against it ends the
 * connection.
 */
export class Channel<S extends TSchema, Out> implements Disposable {
  /** Resolves when the connection is over, whoever ended it. */
  readonly closed: Promise<void>;
  readonly #socket: Duplex;
  readonly #handlers: Handlers<S>;
  #rest = '';

  constructor(socket: Duplex, schema: S, handlers: Handlers<S>) {
    this.#socket = socket;
    this.#handlers = handlers;
    const check = lazyCheck(schema);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.on('error', () => undefined); // 'close' follows
    socket.once('close', () => resolve());
    socket.once('end', () => socket.destroy());
    const decoder = new TextDecoder();
    socket.on('data', (chunk: Buffer) => {
      const lines = (this.#rest + decoder.decode(chunk, { stream: true })).split('\n');
      this.#rest = lines.pop()!;
      for (const line of lines) {
        if (socket.destroyed) return;
        const message = parsed(line);
        if (check.Check(message)) handlers.receive(message);
        else this.#refuse(mistakeIn(schema, message));
      }
      if (this.#rest.length > MAX_LINE_LETTERS) this.#refuse('a line is too long');
    });
  }

  /** Ends the connection if the other side does not read. */
  send(message: Out): void {
    if (this.#socket.destroyed) return;
    if (this.#socket.writableLength > MAX_UNREAD_BYTES) this.#refuse('messages are not read');
    else this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #refuse(reason: string): void {
    this.#socket.destroy();
    this.#handlers.refused?.(reason.slice(0, MAX_REASON_LETTERS));
  }
}

function parsed(text: string): unknown {
  try {
    return parseBoundedJson(text, { maxValues: MAX_VALUES });
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof UnboundedJsonError) return undefined;
    throw error;
  }
}

type Variant = TSchema & Readonly<{ properties: Readonly<{ say: { const: string } }> }>;

/** The first field of a message that is against the schema. */
function mistakeIn(schema: TSchema, message: unknown): string {
  if (typeof message !== 'object' || message === null) return 'a line is no JSON object';
  const say = 'say' in message ? message.say : undefined;
  const variants = (schema as TSchema & { anyOf: readonly Variant[] }).anyOf;
  const variant = variants.find(({ properties }) => properties.say.const === say);
  if (variant === undefined) return `the message ${JSON.stringify(say)} is unknown`;
  const [mistake] = lazyCheck(variant).Errors(message)[1];
  return `in the message ${String(say)} ${mistake?.instancePath ?? ''} ${mistake?.message ?? 'is not understood'}`;
}

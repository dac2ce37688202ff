import type { Duplex } from 'node:stream';

import type { Static, TSchema } from 'typebox';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import type { Clock } from '../../lib/clock.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { Allowance, type ChannelLimits } from './allowance.ts';

const MAX_UNSENT_BYTES = 32 * 1024 * 1024;
const MAX_UNSENT_MESSAGES = 10_000;
/** A short message, or a piece of one, costs as much work as so many bytes. */
const MIN_COST_BYTES = 1024;
const MAX_REASON_LETTERS = 300;
const TOO_LONG = 'a line is too long';

type Handlers<S extends TSchema> = Readonly<{
  receive: (message: Static<S>) => void;
  /** Called where the other side breaks the protocol, which ends the connection. */
  refused?: (reason: string) => void;
}>;

type Settings<S extends TSchema> = Handlers<S> &
  Readonly<{
    /** Union of messages by their field `say`; a line against it ends the connection. */
    schema: S;
    limits: ChannelLimits;
    clock: Clock;
  }>;

/**
 * JSON lines over a connection, both ways. The other side is read no faster than it may send, and loses the connection when it
 * does not read.
 */
export class Channel<S extends TSchema, Out> implements Disposable {
  /** Resolves when the connection is over, whoever ended it. */
  readonly closed: Promise<void>;
  readonly #socket: Duplex;
  readonly #settings: Settings<S>;
  readonly #check: ReturnType<typeof lazyCheck<S>>;
  readonly #allowance: Allowance;
  readonly #decoder = new TextDecoder();
  #pause: Disposable | undefined;
  #rest = '';
  #unsent = 0;

  constructor(socket: Duplex, settings: Settings<S>) {
    this.#socket = socket;
    this.#settings = settings;
    this.#check = lazyCheck(settings.schema);
    this.#allowance = new Allowance(settings.limits);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.on('error', () => undefined); // 'close' follows
    socket.once('close', () => {
      this.#pause?.[Symbol.dispose]();
      resolve();
    });
    socket.once('end', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
  }

  send(message: Out): void {
    if (this.#socket.destroyed) return;
    this.#unsent += 1;
    this.#socket.write(`${JSON.stringify(message)}\n`, () => {
      this.#unsent -= 1;
    });
    if (this.#socket.writableLength > MAX_UNSENT_BYTES || this.#unsent > MAX_UNSENT_MESSAGES)
      this.#refuse('it does not read what it is sent');
  }

  get isClosed(): boolean {
    return this.#socket.destroyed;
  }

  /** Counts bytes as sent by the other side, such as those of a large answer: it is read again when they are allowed. */
  charge(bytes: number): void {
    const waitMs = this.#allowance.take(bytes);
    if (waitMs === 0 || this.isClosed) return;
    this.#pause?.[Symbol.dispose]();
    this.#socket.pause();
    this.#pause = this.#settings.clock.after(waitMs, () => this.#socket.resume());
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    const [first = '', ...others] = this.#decoder.decode(chunk, { stream: true }).split('\n');
    this.#rest += first;
    for (const next of others) {
      const line = this.#rest;
      this.#rest = next;
      this.#receive(line);
      if (this.#socket.destroyed) return;
    }
    if (this.#isTooLong(this.#rest)) return this.#refuse(TOO_LONG);
    this.charge(chunk.length + (others.length + 1) * MIN_COST_BYTES);
  }

  #receive(line: string): void {
    const { schema, limits, receive } = this.#settings;
    if (this.#isTooLong(line)) return this.#refuse(TOO_LONG);
    const message = parseLine(line, limits.maxValues);
    if (this.#check.Check(message)) receive(message);
    else this.#refuse(mistakeIn(schema, message));
  }

  #isTooLong(line: string): boolean {
    return line.length > this.#settings.limits.maxLineLetters;
  }

  #refuse(reason: string): void {
    this.#socket.destroy();
    this.#settings.refused?.(reason.slice(0, MAX_REASON_LETTERS));
  }
}

/** Undefined for a line that is no JSON within the limits. */
export function parseLine(text: string, maxValues: number): unknown {
  try {
    return parseBoundedJson(text, { maxValues });
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof UnboundedJsonError) return undefined;
    throw error;
  }
}

type Variant = TSchema & Readonly<{ properties: Readonly<{ say: { const: string } }> }>;

/** The first field of a message that is against the schema. */
export function mistakeIn(schema: TSchema, message: unknown): string {
  if (typeof message !== 'object' || message === null) return 'a line is no JSON object';
  const say = 'say' in message ? message.say : undefined;
  const variants = (schema as TSchema & { anyOf: readonly Variant[] }).anyOf;
  const variant = variants.find(({ properties }) => properties.say.const === say);
  if (variant === undefined) return `the message ${JSON.stringify(say)} is unknown`;
  const [mistake] = lazyCheck(variant).Errors(message)[1];
  return `in the message ${String(say)} ${mistake?.instancePath ?? ''} ${mistake?.message ?? 'is not understood'}`;
}

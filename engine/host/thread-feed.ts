import { IncomingMessage } from 'node:http';
import { finished, Readable } from 'node:stream';

import { EngineError } from '../lib/errors.ts';
import { bytesPassed } from './garbage.ts';

/** The size of a message, and the bytes on their way to the thread at which the sender waits, and with it the client. */
type Limits = Readonly<{ messageBytes: number; aheadBytes: number }>;

type Message = { chunks: Uint8Array<ArrayBuffer>[] } | { end: { failure?: string } };

/** Sends a stream to a thread in messages of a good size, and waits when the thread is behind. */
export class ThreadFeed {
  readonly #send: (message: Message, memory: readonly ArrayBuffer[]) => void;
  readonly #limits: Limits;
  #stream: Readable | undefined;
  #chunks: Uint8Array<ArrayBuffer>[] = [];
  #bytes = 0;
  #aheadBytes = 0;

  constructor(limits: Limits, send: (message: Message, memory: readonly ArrayBuffer[]) => void) {
    this.#limits = limits;
    this.#send = send;
  }

  /** The thread has consumed so many bytes. */
  consumed(bytes: number): void {
    this.#aheadBytes -= bytes;
    if (this.#aheadBytes < this.#limits.aheadBytes) this.#stream?.resume();
  }

  /**
   * Returns at the end of the stream, or when `work` settles: failed work takes no more bytes. The signal makes it a
   * stream that broke off. The body of a request is left open.
   */
  async run(source: AsyncIterable<Uint8Array>, work: Promise<unknown>, signal?: AbortSignal): Promise<void> {
    const how = { objectMode: false, highWaterMark: 1 };
    const stream = source instanceof Readable ? source : Readable.from(copiesOf(source), how);
    const ended = Promise.withResolvers<{ failure?: string } | undefined>();
    const breakOff = (error: unknown): void => {
      const why = error instanceof Error ? error.message : 'unknown';
      ended.resolve({ failure: error instanceof EngineError ? why : `the upload broke off: ${why}` });
    };
    const over = (): void => ended.resolve(undefined);
    work.then(over, over);
    const abort = (): void => breakOff(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted === true) abort();
    const forget = finished(stream, { writable: false }, (error) => {
      if (error === undefined || error === null) ended.resolve({});
      else breakOff(error);
    });
    const isOwn = stream instanceof IncomingMessage || stream !== source;
    const take = (piece: Buffer): void => this.#take(piece, isOwn);
    this.#stream = stream.on('data', take);
    try {
      const end = await ended.promise;
      if (end === undefined) return;
      this.#flush();
      this.#send({ end }, []);
    } finally {
      this.#stream = undefined;
      signal?.removeEventListener('abort', abort);
      forget();
      stream.off('data', take).pause();
      // Whatever fails in a source from now on: nobody wants its bytes.
      if (stream !== source) stream.on('error', () => undefined).destroy();
    }
  }

  /** A piece with memory of its own is given to the thread as it is. */
  #take(piece: Buffer, isOwn: boolean): void {
    const whole = isOwn && piece.byteLength === piece.buffer.byteLength;
    const chunk = whole ? (piece as Buffer<ArrayBuffer>) : new Uint8Array(piece);
    if (!whole) bytesPassed(piece.length);
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes >= this.#limits.messageBytes) this.#flush();
    if (this.#aheadBytes >= this.#limits.aheadBytes) this.#stream?.pause();
  }

  #flush(): void {
    if (this.#bytes === 0) return;
    const chunks = this.#chunks;
    this.#aheadBytes += this.#bytes;
    this.#chunks = [];
    this.#bytes = 0;
    this.#send(
      { chunks },
      chunks.map(({ buffer }) => buffer),
    );
  }
}

/** Copied when they arrive: a source may use the memory of a piece again for the next one, which the stream asks for early. */
async function* copiesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of source) {
    bytesPassed(piece.length);
    yield new Uint8Array(piece);
  }
}

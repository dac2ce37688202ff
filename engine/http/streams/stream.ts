import { once } from 'node:events';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';

import type { Reply } from '../reply.ts';
import { ClientGone, clientGone } from './client-gone.ts';

/** One JSON object as a progress line. */
export function lineOf(value: unknown): string {
  return `${JSON.stringify(value)}\r\n`;
}

/** A response that is written piece by piece while the client reads. */
export class ResponseStream {
  /** Aborted when the client has gone before the end. */
  readonly signal: AbortSignal;
  /** The response itself, for a `pipeline`. */
  readonly output: ServerResponse;

  constructor(output: ServerResponse) {
    this.signal = clientGone(output);
    this.output = output;
    this.signal.addEventListener('abort', () => output.destroy());
  }

  /** Writes, and waits for a slow client. Writes to a client that has gone are dropped. */
  async write(chunk: string | Uint8Array): Promise<void> {
    if (this.signal.aborted || this.output.write(chunk)) return;
    const settled = new AbortController();
    const signal = AbortSignal.any([this.signal, settled.signal]);
    try {
      await once(this.output, 'drain', { signal });
    } catch (error) {
      if (!this.signal.aborted) throw error;
    } finally {
      settled.abort();
    }
  }

  /** Writes a piece, and waits until the kernel has it, so that its memory can be used again. Throws `ClientGone`. */
  async pass(piece: Uint8Array): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // A write may fail before the response tells that its client has gone.
    this.output.write(piece, (error) => {
      if (error === null || error === undefined) resolve();
      else reject(new ClientGone({ cause: error }));
    });
    await promise;
  }

  /** Whether the client has not taken the last piece yet. */
  get isBehind(): boolean {
    return this.output.writableNeedDrain;
  }

  /** Writes a piece without waiting; `isBehind` tells whether the client keeps up. */
  send(piece: Buffer): void {
    if (!this.signal.aborted) this.output.write(piece);
  }

  /** One JSON object as a progress line. */
  async line(value: unknown): Promise<void> {
    return await this.write(lineOf(value));
  }

  end(): void {
    this.output.end();
  }
}

type StreamOptions = {
  contentType?: string;
  status?: number;
  /** The stream begins without waiting for anybody: its head goes out with its first piece, in one write. */
  isReady?: boolean;
};

/**
 * Answers with a chunked stream whose head is sent at once: clients wait for the head, even if the first byte of the
 * stream is hours away.
 */
export function openStream(reply: Reply, options: StreamOptions = {}): ResponseStream {
  reply.takeOver();
  const { raw } = reply;
  const headers = { ...reply.getHeaders(), 'content-type': options.contentType ?? 'application/json' };
  raw.writeHead(options.status ?? 200, headers as OutgoingHttpHeaders);
  if (options.isReady !== true) raw.flushHeaders();
  return new ResponseStream(raw);
}

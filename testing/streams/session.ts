import type { Duplex } from 'node:stream';

import { unframe } from '@gantry/client/frames.ts';
import { hasCode } from '@gantry/engine/lib/errors.ts';

/** A taken-over connection: keeps the received bytes, and can wait for a text or for the end. */
export class Session {
  readonly socket: Duplex;
  /** Resolves when the other side has ended. */
  readonly ended: Promise<void>;
  readonly #chunks: Buffer[] = [];
  #check: () => void = () => undefined;

  constructor(socket: Duplex) {
    this.socket = socket;
    const end = Promise.withResolvers<void>();
    this.ended = end.promise;
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#check();
    });
    socket.on('end', () => {
      end.resolve();
      this.#check();
    });
    socket.on('error', (error) => {
      if (hasCode(error, 'EPIPE')) end.resolve(); // the other side had closed before we wrote
      else end.reject(error);
    });
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get text(): string {
    return this.bytes.toString();
  }

  /** The payload of a stream that has ended between two frames. */
  get output(): { stdout: string; stderr: string } {
    return unframe(this.bytes);
  }

  /** Waits until the text has been received. */
  async saw(text: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#check = () => {
      if (this.text.includes(text)) resolve();
      else if (this.socket.readableEnded) reject(new Error(`the stream ended without ${text}: ${this.text}`));
    };
    this.#check();
    await promise;
  }

  type(text: string): void {
    this.socket.write(text);
  }
}

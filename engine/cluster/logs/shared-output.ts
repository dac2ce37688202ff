import type { Writable } from 'node:stream';

/** A stream that several sources write to, none of them faster than its reader. */
export class SharedOutput {
  readonly stream: Writable;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(stream: Writable) {
    this.stream = stream;
    const wake = (): void => {
      this.#drained?.resolve();
      this.#drained = undefined;
    };
    stream.on('error', () => undefined); // 'close' follows
    stream.on('drain', wake).once('close', wake);
  }

  /** Whether somebody may still read. */
  get isOpen(): boolean {
    return !this.stream.destroyed && !this.stream.writableEnded;
  }

  /** Writes, and waits for a slow reader; what is written after its end is dropped. */
  async write(piece: string | Buffer): Promise<void> {
    if (!this.isOpen || this.stream.write(piece)) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }
}

import type { ResponseStream } from '../http/streams/stream.ts';
import type { Progress } from '../images/progress/progress.ts';
import { LastLines } from './last-lines.ts';
import type { Sink } from './output.ts';

/** The answer to a build. It begins with the first line, so an error before it has a status of its own. */
export class BuildAnswer implements Sink {
  readonly #open: () => ResponseStream;
  /** Lines of a quiet build, which shows them only if it fails. */
  readonly #kept: LastLines | undefined;
  #stream: ResponseStream | undefined;
  #sent = Promise.resolve();

  constructor(open: () => ResponseStream, isQuiet: boolean) {
    this.#open = open;
    this.#kept = isQuiet ? new LastLines() : undefined;
  }

  get hasBegun(): boolean {
    return this.#stream !== undefined;
  }

  readonly report = (line: Progress): void => {
    if (this.#kept === undefined) this.send(line);
    else this.#kept.add(line);
  };

  readonly taken = async (): Promise<void> => await this.#sent;

  readonly pass = async (lines: Buffer): Promise<void> => {
    if (this.#kept === undefined) await this.#sendLines(lines);
    else this.#kept.addLines(lines);
  };

  send(line: unknown): void {
    this.#stream ??= this.#open();
    const stream = this.#stream;
    this.#sent = stream.line(line).catch(() => void stream.output.destroy());
  }

  /** Sends the lines of a quiet build. */
  async sendKept(): Promise<void> {
    const lines = this.#kept?.bytes;
    if (lines !== undefined && lines.length > 0) await this.#sendLines(lines);
  }

  end(): void {
    this.#stream?.end();
  }

  async #sendLines(lines: Buffer): Promise<void> {
    this.#stream ??= this.#open();
    const { signal } = this.#stream;
    await this.#sent;
    try {
      await this.#stream.pass(lines);
    } catch (error) {
      if (!signal.aborted) throw error; // else the build is about to end
    }
  }
}

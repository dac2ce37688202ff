import type { Report } from '../images/progress.ts';

/** The receiver of a build's lines. */
export type Sink = Readonly<{
  report: Report;
  /** Waits until all lines so far are taken. */
  taken: () => Promise<void>;
  /** Takes lines as they are sent; the memory is free again afterwards. */
  pass: (lines: Buffer) => Promise<void>;
}>;

/** The output of a build for its client. */
export class BuildOutput {
  readonly #sink: Pick<Sink, 'report' | 'taken'>;

  constructor(sink: Pick<Sink, 'report' | 'taken'>) {
    this.#sink = sink;
  }

  /** For lines of another kind, such as those of a pull. */
  get report(): Report {
    return this.#sink.report;
  }

  text(stream: string): void {
    this.#sink.report({ stream });
  }

  /** Red, as in docker, for the stderr of a step. */
  errorText(text: string): void {
    this.#sink.report({ stream: `\u001b[91m${text}\u001b[0m` });
  }

  /** A process waits for this, so that its output never piles up in memory. */
  async taken(): Promise<void> {
    await this.#sink.taken();
  }
}

import type { Instruction } from '../buildfile/instruction.ts';
import type { Progress, Report } from '../images/progress/progress.ts';
import type { Image } from '../images/store.ts';
import { shortId } from '../lib/ids.ts';

/** The receiver of a build's lines. */
export type Sink = Readonly<{
  report: Report;
  /** Waits until all lines so far are taken. */
  taken: () => Promise<void>;
  /** Takes lines as they are sent; the memory is free again afterwards. */
  pass: (lines: Buffer) => Promise<void>;
}>;

/** A step as it is shown. */
export type ShownStep = Readonly<{
  /** In the whole file, and how many it has. */
  number: number;
  count: number;
  instruction: Instruction;
  code: string;
  /** It is one of so many triggers of the base image; 0 for a step of the file. */
  triggers: number;
}>;

/** Told of what happens in a stage, or in the build as a whole. */
export type StageOutput = Readonly<{
  /** For lines of another kind, such as those of a pull. */
  report: Report;
  /** A process waits for this, so that its output never piles up in memory. */
  taken: () => Promise<void>;
  beginStep: (step: ShownStep) => void;
  useCache: () => void;
  /** `image`: undefined for `FROM scratch`. */
  endStep: (image: Image | undefined) => void;
  failStep: (error: unknown) => void;
  /** Text of a process, on its stdout and stderr. */
  text: (text: string) => void;
  errorText: (text: string) => void;
  /** A remark about containers and images of a step. */
  note: (text: string) => void;
  warn: (text: string) => void;
}>;

/** Told of a build: what happens in each of its stages. */
export type BuildOutput = Readonly<{
  whole: StageOutput;
  /** By the place of the stage in the file. */
  stage: (index: number) => StageOutput;
  endStage: (index: number) => void;
  /** Waits until the client has all outputs that have ended. */
  settled: () => Promise<void>;
}>;

/** The lines of a stage as the classic builder writes them. */
export class LineOutput implements StageOutput {
  readonly #sink: Pick<Sink, 'report' | 'taken'>;

  constructor(sink: Pick<Sink, 'report' | 'taken'>) {
    this.#sink = sink;
  }

  readonly report = (line: Progress): void => this.#sink.report(line);
  readonly taken = async (): Promise<void> => await this.#sink.taken();

  readonly beginStep = ({ number, count, code }: ShownStep): void => {
    this.text(`Step ${number}/${count} : ${code}`);
    this.text('\n');
  };

  readonly useCache = (): void => this.text(' ---> Using cache\n');

  readonly endStep = (image: Image | undefined): void =>
    this.text(` ---> ${image === undefined ? '' : shortId(image.id.replace('sha256:', ''))}\n`);

  /** The error itself is the last line of the answer. */
  readonly failStep = (): void => undefined;

  readonly text = (stream: string): void => this.#sink.report({ stream });

  /** Red, as in docker. */
  readonly errorText = (text: string): void => this.#sink.report({ stream: `\u001b[91m${text}\u001b[0m` });

  readonly note = (text: string): void => this.text(text);
  readonly warn = (text: string): void => this.text(text);
}

import type { BuildOutput, ShownStep, StageOutput } from '../../builder/output.ts';
import type { Instruction } from '../../buildfile/instruction.ts';
import type { Stage } from '../../buildfile/stages.ts';
import type { Clock } from '../../lib/clock.ts';
import type { StatusQueue } from './status-queue.ts';
import { Vertex } from './vertex.ts';

/** Instructions that are shown; others only change settings. */
const SHOWN: ReadonlySet<string> = new Set(['from', 'run', 'copy', 'add', 'workdir']);

/** Shows each step of a build as a vertex. */
export class StageVertexes implements BuildOutput {
  readonly whole: StageOutput;
  /** The first step that failed, with the digest of its vertex. */
  failed: Readonly<{ instruction: Instruction; vertex: string | undefined }> | undefined;
  readonly #queue: StatusQueue;
  readonly #clock: Clock;
  readonly #stages: readonly Stage[];

  constructor(queue: StatusQueue, clock: Clock, stages: readonly Stage[]) {
    this.#queue = queue;
    this.#clock = clock;
    this.#stages = stages;
    this.whole = this.#output(() => '');
  }

  readonly stage = (index: number): StageOutput => {
    const { from, steps } = this.#stages[index]!;
    const shown = [from, ...steps].filter(({ kind }) => SHOWN.has(kind));
    const name = this.#stages.length === 1 ? '' : `${from.name || `stage-${index}`} `;
    return this.#output(({ instruction, code }) => {
      const number = shown.indexOf(instruction as (typeof shown)[number]) + 1;
      return number === 0 ? '' : `[${name}${number}/${shown.length}] ${code}`;
    });
  };

  readonly endStage = (): void => undefined;
  readonly settled = async (): Promise<void> => await this.#queue.taken();

  /** `nameOf`: empty for a step that is not shown. */
  #output(nameOf: (step: ShownStep) => string): StageOutput {
    let current: Vertex | undefined;
    let last: string | undefined;
    let instruction: Instruction | undefined;
    const { taken } = this;
    return {
      taken,
      report: (line) => current?.report(line),
      beginStep: (step) => {
        ({ instruction } = step);
        const name = nameOf(step);
        current = name === '' ? undefined : new Vertex(this.#queue, this.#clock, name, last === undefined ? [] : [last]);
        current?.start();
        last = current?.digest ?? last;
      },
      useCache: () => current?.useCache(),
      endStep: () => current?.complete(),
      failStep: (error) => {
        if (instruction !== undefined) this.failed ??= { instruction, vertex: current?.digest };
        current?.fail(error);
      },
      text: (text) => current?.log(text, 1),
      errorText: (text) => current?.log(text, 2),
      note: () => undefined,
      warn: (text) => current?.warn(text),
    };
  }

  readonly taken = async (): Promise<void> => await this.#queue.taken();
}

import type { BuildOutput, ShownStep, StageOutput } from '../../builder/output.ts';
import type { Instruction } from '../../buildfile/instruction.ts';
import type { Stage } from '../../buildfile/stages.ts';
import { parseReference, withDefaultTag } from '../../images/names/reference.ts';
import type { Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import type { StatusQueue } from './status-queue.ts';
import { Vertex } from './vertex.ts';

/** Characters of a here-document that are shown. */
const MAX_SHOWN_LENGTH = 15;
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
      const number = shown.indexOf(instruction) + 1;
      return number === 0 ? '' : `[${name}${number}/${shown.length}] ${shownCode(instruction, code)}`;
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
        current =
          name === '' ? undefined : new Vertex(this.#queue, this.#clock, name, last === undefined ? [] : [last]);
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

function shownCode(instruction: Instruction, code: string): string {
  if (instruction.kind === 'from') return `FROM ${fullName(instruction.base)}`;
  if (instruction.kind !== 'run' || instruction.heredocs.length === 0) return code;
  const [first = '', ...more] = instruction.heredocs[0]!.content.trimEnd().split('\n');
  const isCut = more.length > 0 || first.length > MAX_SHOWN_LENGTH;
  return `${code} (${first.slice(0, MAX_SHOWN_LENGTH)}${isCut ? '...' : ''})`;
}

/** A name with a variable, and that of a stage, as it is written. */
function fullName(base: string): string {
  if (base === 'scratch' || base.includes('$')) return base;
  try {
    const { repository, tag } = withDefaultTag(parseReference(base));
    return tag === undefined ? base : `${repository}:${tag}`;
  } catch (error) {
    if (error instanceof EngineError) return base;
    throw error;
  }
}

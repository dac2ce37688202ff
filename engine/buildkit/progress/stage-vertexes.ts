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
  readonly #isAlone: boolean;
  readonly #platform: string;
  /** Bases that are shown already. */
  readonly #bases = new Set<string>();
  readonly #failures = new Set<unknown>();

  /**
   * `all`: the stages of the file, of which `stages` are those up to the target. `shown`: the platform, if there are several.
   */
  constructor(
    queue: StatusQueue,
    clock: Clock,
    { stages, all, shown }: Readonly<{ stages: readonly Stage[]; all: readonly Stage[]; shown: string }>,
  ) {
    this.#queue = queue;
    this.#clock = clock;
    this.#stages = stages;
    this.#isAlone = isAlone(all);
    this.#platform = shown === '' ? '' : `${shown} `;
    this.whole = this.#output(() => '');
  }

  readonly stage = (index: number): StageOutput => {
    const { from, steps } = this.#stages[index]!;
    const shown = steps.filter(({ kind }) => SHOWN.has(kind)).length;
    const stage = this.#isAlone ? '' : `${from.name || `stage-${index}`} `;
    let number = 0;
    let count = shown;
    let areTriggersCounted = false;
    return this.#output(({ instruction, code, triggers }) => {
      if (code === '') return '';
      if (instruction.kind === 'from') count += 1;
      else if (!SHOWN.has(instruction.kind) || code === 'WORKDIR /') return '';
      if (triggers > 0 && !areTriggersCounted) {
        count += triggers;
        areTriggersCounted = true;
      }
      number += 1;
      const place = String(number).padStart(String(count).length);
      return `[${this.#platform}${stage}${place}/${count}] ${triggers > 0 ? 'ONBUILD ' : ''}${code}`;
    });
  };

  readonly endStage = (): void => undefined;
  readonly settled = async (): Promise<void> => await this.#queue.taken();

  /** `nameOf`: empty for a step that is not shown. */
  #output(nameOf: (step: ShownStep) => string): StageOutput {
    let current: Vertex | undefined;
    let last: string | undefined;
    let instruction: Instruction | undefined;
    /** That of the base image, which follows when its settings are here. */
    let base = '';
    const { taken } = this;
    const begin = (name: string): void => {
      current = name === '' ? undefined : new Vertex(this.#queue, this.#clock, name, last === undefined ? [] : [last]);
      current?.start();
      last = current?.digest ?? last;
    };
    const isNew = (code: string): boolean => !this.#bases.has(code) && this.#bases.add(code) !== undefined;
    return {
      taken,
      report: (line) => current?.report(line),
      beginStep: (step) => {
        ({ instruction } = step);
        const name = nameOf(step);
        const isBase = instruction.kind === 'from' && name !== '';
        base = isBase && isNew(step.code) ? name : '';
        if (base !== '') begin(`[${this.#platform}internal] load metadata for ${step.code.replace(/^FROM /, '')}`);
        else begin(isBase ? '' : name);
      },
      useCache: () => current?.useCache(),
      endStep: () => {
        current?.complete();
        if (base === '') return;
        begin(base);
        current?.complete();
        base = '';
      },
      failStep: (error) => {
        if (instruction !== undefined) this.failed ??= { instruction, vertex: current?.digest };
        if (this.#failures.has(error)) current?.cancel(); // that of an earlier stage
        else current?.fail(error);
        this.#failures.add(error);
      },
      text: (text) => current?.log(text, 1),
      errorText: (text) => current?.log(text, 2),
      note: () => undefined,
      warn: (text) => current?.warn(text),
    };
  }

  readonly taken = async (): Promise<void> => await this.#queue.taken();
}

/** As in BuildKit, which counts the images and the empty sources of mounts as stages. */
function isAlone([stage, ...others]: readonly Stage[]): boolean {
  return (
    others.length === 0 &&
    !stage!.steps.some(
      (step) => (step.kind === 'copy' && step.from !== '') || (step.kind === 'run' && step.mounts.length > 0),
    )
  );
}

import type { Step } from '../../../buildfile/instruction.ts';
import type { Stage } from '../../../buildfile/stages.ts';
import { EngineError } from '../../../lib/errors.ts';

/** A stage that a step takes files of. */
type Source = Readonly<{ stage: number; step: Step }>;

/** The other stages that a stage needs. */
export type StageSources = Readonly<{
  /** The earlier stage that it is based on. */
  base: number | undefined;
  all: readonly Source[];
  /** Refusals of steps that name a later stage; `%` stands for the name of this one. */
  later: ReadonlyMap<Step, string>;
}>;

/** Throws `invalid` for the number of a stage that there is not, and for variables. */
export function stageSources(
  stages: readonly Stage[],
  { steps }: Stage,
  base: Readonly<{ name: string }>,
  index: number,
): StageSources {
  const all: Source[] = [];
  const later = new Map<Step, string>();
  const add = (step: Step, from: string, refusal: string): void => {
    const stage = stageOf(stages, from);
    if (stage === undefined) return;
    all.push({ stage, step });
    if (stage > index) later.set(step, refusal);
  };
  for (const step of steps) {
    if (step.kind === 'copy' && step.from !== '') {
      refuseVariables(step.from);
      add(step, step.from, `cannot copy from stage "${step.from}", it needs to be defined before current stage "%"`);
    }
    if (step.kind !== 'run') continue;
    for (const { from } of step.mounts) {
      const why = 'stage needs to be defined before current command';
      if (from !== '' && !/^\d+$/.test(from)) add(step, from, `cannot mount from stage "${from}", ${why}`);
    }
  }
  const earlier = stages
    .slice(0, index)
    .findLastIndex(({ from }) => from.name !== '' && from.name === base.name.toLowerCase());
  return { base: earlier < 0 ? undefined : earlier, all, later };
}

/** A stage with all that it needs, directly and through others. */
export function stagesNeeded(last: number, sources: readonly StageSources[]): ReadonlySet<number> {
  const needed = new Set([last]);
  for (const index of needed) {
    const { base, all } = sources[index]!;
    if (base !== undefined) needed.add(base);
    for (const { stage } of all) needed.add(stage);
  }
  return needed;
}

/** By its name, of which the last one counts, or its number; undefined for an image. */
function stageOf(stages: readonly Stage[], from: string): number | undefined {
  if (/^\d+$/.test(from)) {
    if (Number(from) < stages.length) return Number(from);
    throw new EngineError('invalid', `invalid stage index ${from}`);
  }
  const named = stages.findLastIndex(({ from: { name } }) => name !== '' && name === from.toLowerCase());
  return named < 0 ? undefined : named;
}

function refuseVariables(from: string): void {
  if (!/\$[\w{]/.test(from)) return;
  const instead = 'define a new stage with FROM using ARG from global scope as a workaround';
  throw new EngineError('invalid', `variable expansion is not supported for --from, ${instead}`);
}

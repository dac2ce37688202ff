import type { Plan, Stage } from '../buildfile/stages.ts';
import { EngineError } from '../lib/errors.ts';
import { withSuggestion } from '../lib/notations/suggestion.ts';
import type { BuildOptions } from './options.ts';

/** The stages up to the wanted one, with the labels of the client. Throws `invalid`. */
export function stagesNamed({ stages, dialect }: Plan, { target, labels }: BuildOptions): Stage[] {
  if (stages.length === 0) throw new EngineError('failed', 'No image was generated. Is your Dockerfile empty?');
  if (dialect === 'classic') refuseSameNames(stages);
  const last = target === '' ? stages.length - 1 : indexOf(stages, target);
  if (last < 0) throw new EngineError('invalid', missingTarget(target, stages, dialect === 'classic'));
  const chosen = stages.slice(0, last + 1);
  const added = Object.entries(labels)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => ({
      kind: 'label' as const,
      pairs: [{ name, value }],
      isLiteral: true,
      code: `LABEL ${name}=${value}`,
      number: 0,
      end: 0,
    }));
  return [...chosen.slice(0, -1), { ...chosen.at(-1)!, steps: [...chosen.at(-1)!.steps, ...added] }];
}

function refuseSameNames(stages: readonly Stage[]): void {
  const names = new Set<string>();
  for (const { from } of stages) {
    if (from.name !== '' && names.has(from.name)) {
      throw new EngineError('invalid', `${from.name} stage name already used`);
    }
    names.add(from.name);
  }
}

function missingTarget(target: string, stages: readonly Stage[], isClassic: boolean): string {
  if (isClassic) return `failed to reach build target ${target} in Dockerfile`;
  const names = stages.map(({ from }, index) => from.name || `stage-${index}`);
  return withSuggestion(`target stage "${target}" could not be found`, target, names);
}

/** By its name, of which the last one counts, or its number. */
function indexOf(stages: readonly Stage[], target: string): number {
  const named = stages.findLastIndex(({ from }) => from.name === target.toLowerCase());
  if (named >= 0) return named;
  return /^\d+$/.test(target) && Number(target) < stages.length ? Number(target) : -1;
}

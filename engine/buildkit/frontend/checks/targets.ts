import type { Line } from '../../../buildfile/parse.ts';
import type { Plan } from '../../../buildfile/stages.ts';
import { descriptionOf } from './check-step.ts';
import { columns, rangesOf, resultOf } from './outline.ts';

/** The stages of a file with their descriptions, for `--call=targets`. */
export function targetsResult(plan: Plan, lines: readonly Line[], text: string): ReadonlyMap<string, Buffer> {
  const byNumber = new Map(lines.map((line) => [line.number, line]));
  const targets = plan.stages.map(({ from }, index) => ({
    from,
    isDefault: index === plan.stages.length - 1,
    description: descriptionOf(from.name, byNumber.get(from.number)?.comments ?? []),
  }));
  const json = targets.map(({ from, isDefault, description }) => ({
    ...(from.name !== '' && { name: from.name }),
    ...(isDefault && { default: true }),
    ...(description !== '' && { description }),
    base: from.base,
    ...(from.platform !== '' && { platform: from.platform }),
    location: { ranges: rangesOf(from) },
  }));
  const rows = targets.map(({ from: { name }, isDefault, description }) => [
    isDefault ? `${name} (default)`.trim() : name,
    description,
  ]);
  const sources = [Buffer.from(text).toString('base64')];
  return resultOf({ targets: json, sources }, columns([['TARGET', 'DESCRIPTION'], ...rows], 1));
}

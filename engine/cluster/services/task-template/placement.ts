import { EngineError } from '../../../lib/errors.ts';
import { parseConstraint } from '../../scheduler/constraint.ts';
import type { Placement, TaskTemplate } from '../../state/task-template.ts';
import { filled, omitEmpty } from '../omit-empty.ts';
import type { TaskTemplateBody } from './schema.ts';

type Body = NonNullable<TaskTemplateBody['Placement']>;

/** Refuses malformed constraints; dockerd answers these with a 500. */
export function checkConstraints({ Constraints }: Body): void {
  try {
    for (const constraint of Constraints ?? []) parseConstraint(constraint);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('failed', `rpc error: code = Unknown desc = ${error.message}`, { cause: error });
  }
}

export function readPlacement(body: Body): Pick<TaskTemplate, 'constraints' | 'placement'> {
  const { Constraints, Preferences, MaxReplicas, Platforms } = body;
  const spreadOver = Preferences?.flatMap(({ Spread }) => (Spread ? [Spread.SpreadDescriptor ?? ''] : []));
  const platforms = Platforms?.map(({ Architecture = '', OS = '' }) => ({ architecture: Architecture, os: OS }));
  const placement: Placement = filled({ spreadOver, maxReplicas: MaxReplicas, platforms });
  return { constraints: Constraints ?? [], ...(Object.keys(placement).length === 0 ? {} : { placement }) };
}

/** Undefined where the client has written no placement. */
export function presentPlacement({ constraints, placement }: TaskTemplate): object | undefined {
  if (constraints === undefined && placement === undefined) return undefined;
  const { spreadOver, maxReplicas, platforms } = placement ?? {};
  return filled({
    Constraints: constraints,
    Preferences: spreadOver?.map((label) => ({ Spread: { SpreadDescriptor: label } })),
    MaxReplicas: maxReplicas,
    Platforms: platforms?.map(({ architecture, os }) => omitEmpty({ Architecture: architecture, OS: os })),
  });
}

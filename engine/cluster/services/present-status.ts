import type { Stored } from '../state/records.ts';
import type { ServiceMode } from '../state/service-spec.ts';
import { hasEnded, isToRun } from '../state/task-states.ts';
import type { View } from '../state/view.ts';

/** The numbers of tasks of a service: a global one wants those that it has. Tasks of a job count in its present iteration. */
export function presentStatus(view: View, { id, spec: { mode }, job }: Stored<'service'>): object {
  const own = [...view.tasksOf(id)].filter(({ jobIteration }) => jobIteration === job?.iteration);
  const wanted = own.filter(({ desired }) => isToRun(desired));
  const open = wanted.filter(({ status }) => job === undefined || !hasEnded(status.state));
  return {
    RunningTasks: wanted.filter(({ status }) => status.state === 'running').length,
    DesiredTasks: desiredOf(mode) ?? open.length,
    CompletedTasks: job === undefined ? 0 : own.filter(({ status }) => status.state === 'complete').length,
  };
}

/** Undefined where the nodes decide. */
function desiredOf(mode: ServiceMode): number | undefined {
  if (mode.kind === 'replicated') return mode.replicas;
  return mode.kind === 'replicated-job' ? mode.maxConcurrent : undefined;
}

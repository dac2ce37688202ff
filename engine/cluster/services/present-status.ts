import type { Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';

/** The numbers of tasks of a service: a global one wants those that it has. */
export function presentStatus(view: View, { id, spec: { mode } }: Stored<'service'>): object {
  const wanted = [...view.tasksOf(id)].filter(({ desired }) => desired === 'running');
  return {
    RunningTasks: wanted.filter(({ status }) => status.state === 'running').length,
    DesiredTasks: mode.kind === 'global' ? wanted.length : mode.replicas,
    CompletedTasks: 0,
  };
}

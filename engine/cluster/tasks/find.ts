import { EngineError } from '../../lib/errors.ts';
import type { Stored } from '../state/records.ts';
import { shownPlace } from '../state/task-states.ts';
import type { View } from '../state/view.ts';

/** The task with this id, or an id with this prefix; throws for none and for several. */
export function findTask(view: View, ref: string): Stored<'task'> {
  const exact = view.get('task', ref);
  if (exact !== undefined) return exact;
  const found = [...view.all('task')].filter(
    (task) => ref !== '' && (task.id.startsWith(ref) || nameOf(view, task) === ref),
  );
  const [task, another] = found;
  if (task === undefined) throw new EngineError('notFound', `task ${ref} not found`);
  if (another !== undefined)
    throw new EngineError('failed', `task ${ref} is ambiguous (${found.length} matches found)`);
  return task;
}

/** `web.1.<id>`, or `web.<node>.<id>` of a global service and of a job's first slot: also the name of its container. */
export function nameOf(view: View, task: Stored<'task'>): string {
  const { id, service } = task;
  const name = view.get('service', service)?.spec.name ?? service;
  return `${name}.${shownPlace(task)}.${id}`;
}

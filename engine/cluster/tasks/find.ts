import { EngineError } from '../../lib/errors.ts';
import type { Stored } from '../state/records.ts';
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

/** `web.1.<id>`, or `web.<node>.<id>` of a global service: also the name of its container. */
export function nameOf(view: View, { id, service, slot, node }: Stored<'task'>): string {
  const name = view.get('service', service)?.spec.name ?? service;
  return `${name}.${slot === 0 ? node : slot}.${id}`;
}

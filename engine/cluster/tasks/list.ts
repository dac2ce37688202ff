import { anyValue, labelsMatch, type Filters } from '../../http/values/filters.ts';
import { refuseIf } from '../../lib/errors.ts';
import { findNode } from '../nodes/find.ts';
import { findService } from '../services/find.ts';
import type { Stored } from '../state/records.ts';
import { isWanted } from '../state/task-states.ts';
import type { View } from '../state/view.ts';
import { nameOf } from './find.ts';

export const TASK_FILTERS = ['desired-state', 'id', 'label', 'name', 'node', 'service'];

const DESIRED = ['running', 'shutdown', 'accepted'];

/** The tasks that pass all filters. `self` is the node that is asked; unknown services and nodes are 404. */
export function listTasks(view: View, filters: Filters, self: string): Stored<'task'>[] {
  for (const value of filters.get('desired-state') ?? []) {
    refuseIf(!DESIRED.includes(value), `Invalid desired-state filter: '${value}'`);
  }
  const services = new Set([...(filters.get('service') ?? [])].map((ref) => findService(view, ref).id));
  const nodes = new Set([...(filters.get('node') ?? [])].map((ref) => findNode(view, ref === 'self' ? self : ref).id));
  return [...view.all('task')].filter(
    (task) =>
      (services.size === 0 || services.has(task.service)) &&
      (nodes.size === 0 || nodes.has(task.node)) &&
      anyValue(filters, 'id', (value) => task.id.startsWith(value)) &&
      anyValue(filters, 'name', (value) => nameOf(view, task).startsWith(value)) &&
      anyValue(filters, 'desired-state', (value) => isDesired(task, value)) &&
      labelsMatch(filters.get('label'), view.get('service', task.service)?.spec.labels ?? {}),
  );
}

/** `running` includes tasks that wait for their turn; `shutdown` includes those to be removed. */
function isDesired({ desired }: Stored<'task'>, value: string): boolean {
  if (value === 'running') return isWanted(desired);
  return value === 'shutdown' && !isWanted(desired);
}

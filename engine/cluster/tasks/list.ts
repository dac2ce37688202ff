import { anyValue, labelsMatch, type Filters } from '../../http/values/filters.ts';
import { EngineError } from '../../lib/errors.ts';
import { findNode } from '../nodes/find.ts';
import { findService } from '../services/find.ts';
import { TASK_STATES, type Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';
import { nameOf } from './find.ts';

/** `_up-to-date` is the command line's, for the progress of an update. */
export const TASK_FILTERS = ['_up-to-date', 'desired-state', 'id', 'label', 'name', 'node', 'runtime', 'service'];

const DESIRED: ReadonlySet<string> = new Set([...TASK_STATES, 'remove']);

/** The tasks that pass all filters; unknown services and nodes are 404. */
export function listTasks(view: View, filters: Filters): Stored<'task'>[] {
  for (const value of filters.get('desired-state') ?? []) {
    if (!DESIRED.has(value.toLowerCase())) {
      throw new EngineError('failed', `Invalid desired-state filter: '${value}'`);
    }
  }
  const services = new Set([...(filters.get('service') ?? [])].map((ref) => findService(view, ref).id));
  const nodes = new Set([...(filters.get('node') ?? [])].map((ref) => findNode(view, ref).id));
  const all = services.size === 0 ? [...view.all('task')] : [...services].flatMap((id) => [...view.tasksOf(id)]);
  return all.filter(
    (task) =>
      (nodes.size === 0 || nodes.has(task.node)) &&
      anyValue(filters, 'id', (value) => task.id.startsWith(value)) &&
      anyValue(filters, 'name', (value) => nameOf(view, task).startsWith(value)) &&
      anyValue(filters, 'desired-state', (value) => task.desired === value.toLowerCase()) &&
      anyValue(filters, 'runtime', (value) => value === 'container') &&
      anyValue(filters, '_up-to-date', (value) => value !== 'true' || isUpToDate(view, task)) &&
      labelsMatch(filters.get('label'), view.get('service', task.service)?.spec.labels ?? {}),
  );
}

function isUpToDate(view: View, { service, template }: Stored<'task'>): boolean {
  return view.get('service', service)?.template === template;
}

import { isUpdating } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import { compareStates, hasEnded, isWanted } from '../state/task-states.ts';
import { Places } from './places.ts';
import type { Turn } from './turn.ts';
import { firstNewOf } from './update-failure.ts';

/**
 * Deletes unneeded tasks of a service: those to be removed once they have ended, and of each
 * place the oldest ones that are over, except as many as the history keeps (below 0: all). While the service is updated the
 * first new task of each place stays too: the update's delay counts from it.
 */
export function reap(draft: Draft, service: string, kept: number, turn: Turn): void {
  const record = draft.get('service', service);
  const updating = record !== undefined && isUpdating(record) ? record : undefined;
  for (const [, tasks] of new Places(draft.tasksOf(service))) {
    if (turn.isFull) return;
    for (const task of tasks) if (task.desired === 'remove' && isOver(draft, task)) turn.delete(draft, task);
    if (kept < 0) continue;
    const first = updating === undefined ? undefined : firstNewOf(updating, tasks);
    const history = tasks.filter((task) => task !== first && isPast(record, task) && isOver(draft, task));
    for (const task of history.slice(0, Math.max(history.length - kept, 0))) turn.delete(draft, task);
  }
}

/** Told to end, or of an earlier iteration of a job: its complete tasks count in the present one. */
function isPast(service: Stored<'service'> | undefined, { desired, jobIteration }: Stored<'task'>): boolean {
  return desired === 'shutdown' || (desired === 'complete' && jobIteration !== service?.job?.iteration);
}

/** Nothing of it runs: it has ended, has no node, or its node is no member any more. */
function isOver(draft: Draft, { status, node, desired }: Stored<'task'>): boolean {
  if (hasEnded(status.state)) return true;
  if (isWanted(desired)) return false;
  return compareStates(status.state, 'assigned') < 0 || draft.get('node', node) === undefined;
}

import type { Draft } from '../state/draft.ts';
import { hasEnded } from '../state/task-states.ts';
import type { Turn } from './turn.ts';

/** Tasks of a node that is down for less time may still run there, so they keep their addresses. */
const ORPHAN_TIMEOUT_HOURS = 24;

/**
 * Gives up the tasks of a node that is no member any more, or has been down for a day. Returns when to look again.
 *
 * The day begins with the last change of the node's record: its going down, unless somebody changed it since.
 */
export function orphanTasks(draft: Draft, id: string, turn: Turn): Temporal.Instant | undefined {
  const node = draft.get('node', id);
  if (node !== undefined) {
    if (node.status.state !== 'down') return undefined;
    const end = Temporal.Instant.from(node.updatedAt).add({ hours: ORPHAN_TIMEOUT_HOURS });
    if (Temporal.Instant.compare(turn.now, end) < 0) return end;
  }
  const message = node === undefined ? 'the node is no member any more' : 'the node has been down for a day';
  for (const task of [...draft.tasksOn(id)]) {
    if (!hasEnded(task.status.state)) turn.end(draft, task, 'orphaned', message);
  }
  return undefined;
}

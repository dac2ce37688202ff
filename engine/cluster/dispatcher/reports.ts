import { shortenText } from '../../lib/notations/field-schemas.ts';
import type { Draft } from '../state/draft.ts';
import { compareStates, isOfAgent } from '../state/task-states.ts';
import type { ReportMessage } from '../wire/task-messages.ts';

/**
 * Puts what a node says of its tasks into the records. A task never goes back, so a report that is late, or of a task
 * that the leader has ended itself, changes nothing; nor does one of another node's task.
 */
export function applyReport(draft: Draft, node: string, { tasks }: ReportMessage, now: Temporal.Instant): void {
  for (const { id, status } of tasks) {
    const task = draft.get('task', id);
    if (task === undefined || task.node !== node || !isOfAgent(status.state)) continue;
    if (compareStates(status.state, task.status.state) <= 0) continue;
    const { startedAt = task.status.startedAt, container = task.status.container, message, error, ...rest } = status;
    draft.put('task', {
      ...task,
      updatedAt: now.toString(),
      status: {
        ...rest,
        message: shortenText(message),
        ...(error === undefined ? {} : { error: shortenText(error) }),
        ...(startedAt === undefined ? {} : { startedAt }),
        ...(container === undefined ? {} : { container }),
      },
    });
  }
}

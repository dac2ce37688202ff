import { restartOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import { hasEnded } from '../state/task-states.ts';
import { endedByItself, wantedOf } from './places.ts';
import { isLost } from './restart.ts';
import { plausibleMoment, type Turn } from './turn.ts';

/** The longest wait of a task for the end of the one before it. */
const MAX_WAIT_SECONDS = 60;

type Task = Stored<'task'>;

/**
 * Lets the waiting task of a place run, when the one before it is gone and the delay of the restart policy is over.
 * After a task that was told to end, such as by an update, there is no delay. Returns when to look again.
 */
export function promote(
  draft: Draft,
  service: Stored<'service'>,
  tasks: readonly Task[],
  turn: Turn,
): Temporal.Instant | undefined {
  const task = wantedOf(tasks);
  if (task?.desired !== 'ready') return undefined;
  const created = plausibleMoment(task.createdAt, turn.now);
  const before = tasks[tasks.indexOf(task) - 1];
  const patience = created.add({ seconds: MAX_WAIT_SECONDS });
  const isGone = before === undefined || hasEnded(before.status.state) || isLost(draft, before);
  const isLate = Temporal.Instant.compare(turn.now, patience) >= 0;
  const due = before !== undefined && hasDelay(draft, before) ? created.add(delayOf(service)) : created;
  if (Temporal.Instant.compare(turn.now, due) < 0) return due;
  if (!isGone && !isLate) return patience;
  turn.want(draft, task, service.job === undefined ? 'running' : 'complete');
  return undefined;
}

function hasDelay(draft: Draft, before: Task): boolean {
  return endedByItself(before) || (before.node !== '' && isLost(draft, before));
}

function delayOf({ spec }: Stored<'service'>): Temporal.Duration {
  return Temporal.Duration.from({ nanoseconds: restartOf(spec.template).delayNs });
}

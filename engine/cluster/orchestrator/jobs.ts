import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import type { ServiceMode } from '../state/service-spec.ts';
import { hasEnded, placeOf } from '../state/task-states.ts';
import { globalPlaces } from './desired-places.ts';
import { Places } from './places.ts';
import { promote } from './promote.ts';
import { fill } from './restart.ts';
import { Earliest, type Turn } from './turn.ts';

type Service = Stored<'service'>;
type Task = Stored<'task'>;

/**
 * Starts tasks of a job's present iteration until enough of them are complete; unfinished tasks of earlier iterations are
 * removed. A complete task gets no successor. Returns when to look again.
 */
export function reconcileJob(
  draft: Draft,
  service: Service,
  tasks: readonly Task[],
  turn: Turn,
): Temporal.Instant | undefined {
  const own = tasks.filter((task) => isOwn(service, task));
  const completed = new Set(own.filter(({ status }) => status.state === 'complete').map(placeOf));
  const open = new Places(own.filter((task) => !completed.has(placeOf(task))));
  for (const task of tasks) {
    if (task.status.state === 'complete' || turn.isFull) continue;
    if (!isOwn(service, task)) {
      turn.want(draft, task, hasEnded(task.status.state) ? 'shutdown' : 'remove');
    } else if (completed.has(placeOf(task))) turn.want(draft, task, 'shutdown');
  }
  const { mode } = service.spec;
  const wanted =
    mode.kind === 'replicated-job'
      ? openSlots(mode, open, completed)
      : openNodes(draft, service, open).difference(completed);
  for (const [place, surplus] of open) {
    if (wanted.has(place)) continue;
    const goal = draft.get('node', place) === undefined ? 'remove' : 'shutdown';
    for (const task of surplus) if (!turn.isFull) turn.want(draft, task, goal);
  }
  for (const place of wanted) if (!turn.isFull) fill(draft, service, place, open.at(place), turn);

  const look = new Earliest(turn.now);
  const after = new Places(
    draft.tasksOf(service.id).filter((task) => isOwn(service, task) && !completed.has(placeOf(task))),
  );
  for (const place of wanted) if (!turn.isFull) look.at(promote(draft, service, after.at(place), turn));
  return look.value;
}

/**
 * Slots with a task that is not complete, and free ones as long as the job may have more at a time. A task that is not to be
 * started again keeps its place: the job makes no further progress once all places are taken so, as with dockerd.
 */
function openSlots(
  { maxConcurrent, totalCompletions }: ServiceMode & { kind: 'replicated-job' },
  open: Places,
  completed: ReadonlySet<string>,
): ReadonlySet<string> {
  const wanted = new Set([...open].map(([place]) => place));
  const count = Math.min(maxConcurrent, totalCompletions - completed.size);
  for (let slot = 1; wanted.size < count; slot += 1) if (!completed.has(String(slot))) wanted.add(String(slot));
  return wanted;
}

/** Nodes of a global job; a node that joined after the job's start has a part in it only while others still run it. */
function openNodes(draft: Draft, service: Service, open: Places): ReadonlySet<string> {
  const start = service.job!.startedAt;
  const isUnderWay = [...open].some(([, tasks]) => tasks.some(({ status }) => !hasEnded(status.state)));
  const nodes = [...globalPlaces(draft, service, open)].filter((id) => {
    if (isUnderWay || open.at(id).length > 0) return true;
    return Temporal.Instant.compare(draft.get('node', id)!.createdAt, start) <= 0;
  });
  return new Set(nodes);
}

function isOwn({ job }: Service, { jobIteration }: Task): boolean {
  return jobIteration === job?.iteration;
}

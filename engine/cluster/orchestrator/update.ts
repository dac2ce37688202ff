import { updateOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import { hasEnded } from '../state/task-states.ts';
import { endedByItself, finishedOf, Places, wantedOf } from './places.ts';
import { Earliest, type Turn } from './turn.ts';

/** A task that ends this soon after its start counts as failed. */
const MONITOR_SECONDS = 5;
const NS_PER_SECOND = 1e9;

type Service = Stored<'service'>;
type Task = Stored<'task'>;
type Status = NonNullable<Service['updateStatus']>;

/**
 * Replaces tasks of an older template, some at once, the next when these have run for the update's delay. Returns when to
 * look again.
 */
export function update(
  draft: Draft,
  service: Service,
  wanted: ReadonlySet<string>,
  turn: Turn,
): Temporal.Instant | undefined {
  const places = new Places(draft.tasksOf(service.id));
  const current = [...wanted].map((place) => ({ place, task: taskAt(service, places.at(place)) }));
  const dirty = current.filter(({ task }) => task !== undefined && task.template !== service.template);
  const status = begun(draft, service, dirty.length > 0, turn);
  if (status?.state !== 'updating') return undefined;

  const { parallelism, delayNs, failureAction } = updateOf(service.spec);
  const isNew = (task: Task): boolean =>
    task.template === service.template && Temporal.Instant.compare(task.createdAt, status.startedAt) >= 0;
  const broken = draft.tasksOf(service.id).find((task) => isNew(task) && endedEarly(task));
  if (broken !== undefined && failureAction === 'pause') {
    const message = `update paused due to failure or early termination of task ${broken.id}`;
    draft.put('service', { ...service, updateStatus: { ...status, state: 'paused', message } });
    return undefined;
  }
  const updated = current.flatMap(({ task }) => (task !== undefined && isNew(task) ? [task] : []));
  const look = new Earliest(turn.now);
  const settling = (seconds: number): number => updated.filter((task) => isSettling(task, seconds, look)).length;

  const free = parallelism === 0 ? dirty.length : parallelism - settling(delayNs / NS_PER_SECOND);
  for (const { place } of dirty.slice(0, Math.max(free, 0))) replace(draft, service, place, places.at(place), turn);
  if (dirty.length > 0) return look.value;

  const quiet = delayNs >= MONITOR_SECONDS * NS_PER_SECOND ? delayNs / NS_PER_SECOND + 1 : MONITOR_SECONDS;
  if (settling(quiet) > 0) return look.value;
  const end = { state: 'completed', completedAt: turn.now.toString(), message: 'update completed' } as const;
  draft.put('service', { ...service, updateStatus: { ...status, ...end } });
  return undefined;
}

/** What a place has of the service: the task that is to run there, or the last one, which gets no successor. */
function taskAt(service: Service, tasks: readonly Task[]): Task | undefined {
  return wantedOf(tasks) ?? finishedOf(service, tasks);
}

/** The status of the update under way; an API update removes the last one. */
function begun(draft: Draft, service: Service, isDirty: boolean, turn: Turn): Status | undefined {
  if (service.updateStatus !== undefined || !isDirty) return service.updateStatus;
  const status: Status = { state: 'updating', startedAt: turn.now.toString(), message: 'update in progress' };
  draft.put('service', { ...service, updateStatus: status });
  return status;
}

/** Not running for this long. A task that is over settles nothing: the restart policy handles it. */
function isSettling(task: Task, seconds: number, look: Earliest): boolean {
  if (hasEnded(task.status.state)) return false;
  if (task.status.state !== 'running') return true;
  const until = Temporal.Instant.from(task.status.timestamp).add({ milliseconds: Math.ceil(seconds * 1000) });
  look.at(until);
  return look.isAhead(until);
}

function endedEarly(task: Task): boolean {
  if (!endedByItself(task)) return false;
  const { startedAt, timestamp } = task.status;
  if (startedAt === undefined) return true;
  const monitored = Temporal.Instant.from(startedAt).add({ seconds: MONITOR_SECONDS });
  return Temporal.Instant.compare(timestamp, monitored) < 0;
}

function replace(draft: Draft, service: Service, place: string, tasks: readonly Task[], turn: Turn): void {
  const old = wantedOf(tasks);
  if (old !== undefined) turn.want(draft, old, 'shutdown');
  turn.add(draft, service, place, old === undefined || hasEnded(old.status.state) ? [] : [old]);
}

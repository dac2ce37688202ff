import { isUpdating, updateOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import { compareStates, hasEnded, isWanted } from '../state/task-states.ts';
import { finishedOf, Places, wantedOf } from './places.ts';
import { Earliest, plausibleMoment, type Turn } from './turn.ts';
import { failureOf, firstNewOf, isOf, stopOrRollBack } from './update-failure.ts';

const SECOND_NS = 1e9;

type Service = Stored<'service'>;
type Task = Stored<'task'>;
type Status = NonNullable<Service['updateStatus']>;

/**
 * Replaces tasks of an older template, some at once, the next when the update's delay is over since these came to run.
 * Returns when to look again.
 */
export function update(
  draft: Draft,
  service: Service,
  wanted: ReadonlySet<string>,
  turn: Turn,
): Temporal.Instant | undefined {
  const places = new Places(draft.tasksOf(service.id));
  const current = [...wanted].map((place) => ({ place, task: taskAt(service, places.at(place)) }));
  const old = current.filter(({ task }) => task !== undefined && task.template !== service.template);
  const status = begun(draft, service, old.length > 0, turn);
  if (status === undefined || !isUpdating({ updateStatus: status })) return undefined;

  const updating = { ...service, updateStatus: status };
  const config = updateOf(updating);
  const updated = current.flatMap(({ place }) => firstNewOf(updating, places.at(place)) ?? []);
  const failure = failureOf(updating, draft.tasksOf(service.id), old.length + updated.length);
  if (failure !== undefined) {
    stopOrRollBack(draft, updating, failure, turn);
    return undefined;
  }
  const look = new Earliest(turn.now);
  const settling = (ns: number): number => updated.filter((task) => isSettling(task, ns, look, turn)).length;
  const dirty = old.filter(({ place }) => !wasTried(updating, places.at(place)));
  const free = config.parallelism === 0 ? dirty.length : config.parallelism - settling(config.delayNs);
  for (const { place } of dirty.slice(0, Math.max(free, 0))) {
    if (!turn.isFull) replace(draft, updating, place, places.at(place), turn);
  }
  if (dirty.length > 0) return look.value;

  const quietNs = config.delayNs >= config.monitorNs ? config.delayNs + SECOND_NS : config.monitorNs;
  if (settling(quietNs) > 0) return look.value;
  const [state, message] =
    status.state === 'updating'
      ? (['completed', 'update completed'] as const)
      : (['rollback_completed', 'rollback completed'] as const);
  const completedAt = turn.now.toString();
  draft.put('service', { ...service, updateStatus: { ...status, state, completedAt, message } });
  return undefined;
}

/** The service's task in a place: the one that is to run there, or the last one, which gets no successor. */
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

/**
 * Whether the first new task of a place came to run less than this long ago, by the leader's clock: its node may have another
 * time. If it has ended since, its place holds up no other one: further tasks there are the restart policy's.
 */
function isSettling(first: Task, ns: number, look: Earliest, { now }: Turn): boolean {
  const { state } = first.status;
  if (compareStates(state, 'running') < 0) return true;
  const until = plausibleMoment(first.updatedAt, now)
    .subtract(lifeOf(first))
    .add({ milliseconds: Math.ceil(ns / 1e6) });
  look.at(until);
  return look.isAhead(until);
}

/** Time from a task's start to its end, by the clock of its node; nothing of a task that runs, or never did. */
function lifeOf({ status: { state, startedAt, timestamp } }: Task): Temporal.Duration {
  if (startedAt === undefined || !hasEnded(state)) return new Temporal.Duration();
  const life = Temporal.Instant.from(timestamp).since(startedAt);
  return life.sign < 0 ? new Temporal.Duration() : life;
}

/** The new task of a place has ended and gets no successor, and the old one still runs: it was to be started first. */
function wasTried(service: Service, tasks: readonly Task[]): boolean {
  return tasks.some((task) => isOf(service, task) && hasEnded(task.status.state) && !isWanted(task.desired));
}

function replace(draft: Draft, service: Service, place: string, tasks: readonly Task[], turn: Turn): void {
  const old = wantedOf(tasks);
  const wanted = tasks.filter(({ desired, status }) => isWanted(desired) && !hasEnded(status.state));
  if (updateOf(service).order === 'start-first') {
    const own = wanted.findLast(({ template }) => template === service.template);
    const running = wanted.findLast(({ status }) => status.state === 'running');
    const kept = own ?? running;
    if (kept !== undefined) {
      for (const task of wanted) if (task !== kept) turn.want(draft, task, 'shutdown');
      if (own === undefined) turn.add(draft, service, place, []);
      return;
    }
  }
  if (old !== undefined) turn.want(draft, old, 'shutdown');
  turn.add(draft, service, place, old === undefined || hasEnded(old.status.state) ? [] : [old]);
}

import { restartOf } from '../state/defaults.ts';
import type { ServiceRecord, Stored } from '../state/records.ts';
import { hasEnded, isWanted, placeOf } from '../state/task-states.ts';

type Task = Stored<'task'>;

/** The tasks of a service by place: its slot, or its node where the service is global. */
export class Places {
  readonly #byPlace: Map<string, Task[]>;

  constructor(tasks: Iterable<Task>) {
    this.#byPlace = Map.groupBy(tasks, placeOf);
    for (const list of this.#byPlace.values()) list.sort(byAge);
  }

  [Symbol.iterator](): IteratorObject<[place: string, tasks: Task[]]> {
    return this.#byPlace.entries();
  }

  /** The oldest first. */
  at(place: string): readonly Task[] {
    return this.#byPlace.get(place) ?? [];
  }
}

/** The newest task that is wanted. */
export function wantedOf(tasks: readonly Task[]): Task | undefined {
  return tasks.findLast(({ desired }) => isWanted(desired));
}

/**
 * The last task of a place that is over and gets no successor: it ended by itself, or was not to be started again.
 * Undefined while a task is wanted there.
 */
export function finishedOf(service: ServiceRecord, tasks: readonly Task[]): Task | undefined {
  const last = tasks.findLast(({ desired }) => desired !== 'remove');
  if (last === undefined || isWanted(last.desired)) return undefined;
  return endedByItself(last) || restartOf(service.spec.template).condition === 'none' ? last : undefined;
}

/** The task ended without being told to. */
export function endedByItself({ status }: Task): boolean {
  return hasEnded(status.state) && status.state !== 'shutdown' && status.state !== 'orphaned';
}

function byAge(a: Task, b: Task): number {
  return Temporal.Instant.compare(a.createdAt, b.createdAt) || (a.id < b.id ? -1 : 1);
}

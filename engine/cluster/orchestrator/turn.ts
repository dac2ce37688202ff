import type { Draft } from '../state/draft.ts';
import type { DesiredState, Stored, TaskRecord } from '../state/records.ts';
import { hasEnded } from '../state/task-states.ts';

const ORDER: readonly DesiredState[] = ['ready', 'running', 'complete', 'shutdown', 'remove'];

/** Changes of tasks in one turn, and tasks that are looked at in one. */
export const MAX_CHANGES = 2000;
const MAX_CHECKED = 10_000;

/** The difference of the managers' clocks that is waited for. */
const SKEW_SECONDS = 60;
const LONG_AGO = Temporal.Instant.fromEpochMilliseconds(0);

/**
 * One moment of the leader: its time, and the ids that it gives. It has an end: a leader that decided on 100,000 tasks at once
 * would answer nobody for seconds, and lose its lease. What is left is done in the next turn.
 */
export class Turn {
  readonly now: Temporal.Instant;
  readonly #newId: () => string;
  #changes = 0;
  #lookedAt = 0;

  constructor(now: Temporal.Instant, newId: () => string) {
    this.now = now;
    this.#newId = newId;
  }

  /** No more tasks are to be changed. */
  get isFull(): boolean {
    return this.#changes >= MAX_CHANGES;
  }

  /** No more services or nodes are to be looked at. */
  get isOver(): boolean {
    return this.isFull || this.#lookedAt >= MAX_CHECKED;
  }

  /** Tasks that belong to what is looked at. */
  lookAt<T>(tasks: Iterable<T>): T[] {
    const all = [...tasks];
    this.#lookedAt += all.length;
    return all;
  }

  /** Adds a task to a place of a service. Where another one has not ended yet, it waits for that. */
  add(draft: Draft, service: Stored<'service'>, place: string, before: readonly TaskRecord[]): void {
    const { job, spec } = service;
    const isGlobal = spec.mode.kind === 'global' || spec.mode.kind === 'global-job';
    const timestamp = this.now.toString();
    // A leader before may have had a clock that is ahead: the task still belongs to the update, and follows the others.
    const since = service.updateStatus?.since ?? service.updateStatus?.startedAt;
    const earlier = [...(since === undefined ? [] : [since]), ...before.map(({ createdAt }) => createdAt)];
    this.#changes += 1;
    draft.put('task', {
      id: this.#newId(),
      createdAt: momentAfter(earlier, this.now).toString(),
      updatedAt: timestamp,
      service: service.id,
      slot: isGlobal ? 0 : Number(place),
      node: isGlobal ? place : '',
      template: service.template,
      ...(job === undefined ? {} : { jobIteration: job.iteration }),
      desired: before.length > 0 ? 'ready' : job === undefined ? 'running' : 'complete',
      status: { state: 'new', timestamp, message: 'created' },
      addresses: [],
    });
  }

  /** A task that was told to end is never wanted again. */
  want(draft: Draft, task: TaskRecord, desired: DesiredState): void {
    if (ORDER.indexOf(desired) > ORDER.indexOf(task.desired)) this.#put(draft, { ...task, desired });
  }

  /** Ends a task by the leader's decision, whatever its node says. */
  end(draft: Draft, task: TaskRecord, state: 'rejected' | 'orphaned', message: string, error?: string): void {
    if (hasEnded(task.status.state)) return;
    const { container } = task.status;
    const status = {
      state,
      timestamp: this.now.toString(),
      message,
      ...(error === undefined ? {} : { error }),
      ...(container === undefined ? {} : { container }),
    };
    this.#put(draft, { ...task, status });
  }

  delete(draft: Draft, task: TaskRecord): void {
    this.#changes += 1;
    draft.delete('task', task.id);
  }

  #put(draft: Draft, task: TaskRecord): void {
    this.#changes += 1;
    draft.put('task', { ...task, updatedAt: this.now.toString() });
  }
}

/** Now; where moments are ahead of it, a millisecond after the last one. */
function momentAfter(earlier: readonly string[], now: Temporal.Instant): Temporal.Instant {
  let after = now;
  for (const moment of earlier) {
    if (Temporal.Instant.compare(moment, after) > 0) after = Temporal.Instant.from(moment).add({ milliseconds: 1 });
  }
  return after;
}

/**
 * A moment that a leader has stored, to wait for some time after it. One that is far ahead is of a manager whose clock is wrong,
 * or was: nothing waits for it.
 */
export function plausibleMoment(moment: string, now: Temporal.Instant): Temporal.Instant {
  const at = Temporal.Instant.from(moment);
  return Temporal.Instant.compare(at, now.add({ seconds: SKEW_SECONDS })) > 0 ? LONG_AGO : at;
}

/** The earliest of several moments that are still to come. */
export class Earliest {
  readonly #now: Temporal.Instant;
  value: Temporal.Instant | undefined;

  constructor(now: Temporal.Instant) {
    this.#now = now;
  }

  isAhead(moment: Temporal.Instant): boolean {
    return Temporal.Instant.compare(moment, this.#now) > 0;
  }

  at(moment: Temporal.Instant | undefined): void {
    if (moment === undefined || !this.isAhead(moment)) return;
    if (this.value === undefined || Temporal.Instant.compare(moment, this.value) < 0) this.value = moment;
  }
}

import type { Draft } from '../state/draft.ts';
import type { DesiredState, Stored, TaskRecord } from '../state/records.ts';
import { hasEnded } from '../state/task-states.ts';

const ORDER: readonly DesiredState[] = ['ready', 'running', 'shutdown', 'remove'];

/** One moment of the leader: its time, and the ids that it gives. */
export class Turn {
  readonly now: Temporal.Instant;
  readonly #newId: () => string;

  constructor(now: Temporal.Instant, newId: () => string) {
    this.now = now;
    this.#newId = newId;
  }

  /** Adds a task to a place of a service. Where another one has not ended yet, it waits for that. */
  add(draft: Draft, service: Stored<'service'>, place: string, before: readonly TaskRecord[]): void {
    const isGlobal = service.spec.mode.kind === 'global';
    const timestamp = this.now.toString();
    draft.put('task', {
      id: this.#newId(),
      createdAt: timestamp,
      updatedAt: timestamp,
      service: service.id,
      slot: isGlobal ? 0 : Number(place),
      node: isGlobal ? place : '',
      template: service.template,
      desired: before.length === 0 ? 'running' : 'ready',
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

  #put(draft: Draft, task: TaskRecord): void {
    draft.put('task', { ...task, updatedAt: this.now.toString() });
  }
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

import type { Clock } from '../../lib/clock.ts';
import { Draft } from '../state/draft.ts';
import type { Replica } from '../state/replica.ts';
import { LeadershipLost, type Batches } from './batches.ts';

/** A function of the draft and the time, such as the scheduler; it does nothing else. */
export type Stage = (draft: Draft, now: Temporal.Instant) => void;
export type Work<T> = (draft: Draft, now: Temporal.Instant) => T;

type Waiting = Readonly<{
  run: (draft: Draft, now: Temporal.Instant) => void;
  stored: (revision: number) => void;
  failed: (error: unknown) => void;
}>;

/**
 * The turns of a leader: all waiting work is done in one draft, then come the stages, then one store; only then memory
 * changes and the callers are answered. Work that arrives meanwhile is for the next turn.
 */
export class Turns implements AsyncDisposable {
  readonly #batches: Batches;
  readonly #replica: Replica;
  readonly #clock: Clock;
  readonly #stages: readonly Stage[];
  readonly #lost: (reason: LeadershipLost) => void;
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #ended: LeadershipLost | undefined;

  constructor(
    parts: { batches: Batches; replica: Replica; clock: Clock; stages: readonly Stage[] },
    lost: (reason: LeadershipLost) => void,
  ) {
    this.#batches = parts.batches;
    this.#replica = parts.replica;
    this.#clock = parts.clock;
    this.#stages = parts.stages;
    this.#lost = lost;
  }

  /** Resolves when what `work` did is stored; what it throws refuses it alone. */
  async write<T>(work: Work<T>): Promise<{ result: T; revision: number }> {
    if (this.#ended !== undefined) throw this.#ended;
    const { promise, resolve, reject } = Promise.withResolvers<{ result: T; revision: number }>();
    let result: T;
    this.#waiting.push({
      run: (draft, now) => {
        result = draft.attempt((inner) => work(inner, now));
      },
      stored: (revision) => resolve({ result, revision }),
      failed: reject,
    });
    this.#running ??= this.#run();
    return await promise;
  }

  /** Refuses waiting work; a batch that is under way is completed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended ??= new LeadershipLost('this manager does not lead the cluster any more');
    await this.#running;
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // work that arrives at once shares the turn
    while (this.#waiting.length > 0) await this.#turn();
    this.#running = undefined;
  }

  async #turn(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (this.#ended !== undefined) {
      for (const { failed } of waiting) failed(this.#ended);
      return;
    }
    const draft = new Draft(this.#replica);
    const now = this.#clock.now();
    const done = waiting.filter(({ run, failed }) => {
      try {
        run(draft, now);
        return true;
      } catch (error) {
        failed(error);
        return false;
      }
    });
    try {
      for (const stage of this.#stages) stage(draft, now);
      await this.#batches.store(draft.changes, (revision, changes) => this.#replica.apply({ revision, changes }));
      for (const { stored } of done) stored(this.#replica.revision);
    } catch (error) {
      for (const { failed } of done) failed(error);
      if (!(error instanceof LeadershipLost)) throw error;
      this.#ended = error;
      this.#lost(error);
    }
  }
}

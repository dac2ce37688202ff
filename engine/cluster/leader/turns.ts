import type { Logger } from 'pino';

import type { Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { isWithin } from '../../lib/notations/field-schemas.ts';
import { Draft } from '../state/draft.ts';
import type { Replica } from '../state/replica.ts';
import { LeadershipLost, type Batches } from './batches.ts';

/** Decisions after the work of a turn. `run` returns the time when it wants a turn though nobody writes. */
export type Decisions = { run(draft: Draft, now: Temporal.Instant): Temporal.Instant | undefined };
export type Work<T> = (draft: Draft, now: Temporal.Instant) => T;

type Waiting = Readonly<{
  run: (draft: Draft, now: Temporal.Instant) => void;
  stored: (revision: number) => void;
  failed: (error: unknown) => void;
}>;

type Parts = Readonly<{
  batches: Batches;
  replica: Replica;
  clock: Clock;
  log: Logger;
  /** New ones, which know the records only. */
  decisions: () => Decisions;
}>;

/** Room for two specifications of a service, or the largest config; etcd takes 1.5 MB at a time, with keys. */
const MAX_STORED_BYTES = 1_480_000;
const SECONDS_AFTER_FAILURE = 5;
/** Records that the work of one turn changes: more would keep the leader from its lease. */
const MAX_WRITTEN = 2000;

/**
 * The turns of a leader: waiting work is done in one draft, as much as a turn has room for, then decisions follow from it, then
 * it is stored; only then memory changes and the callers are answered. Work that arrives meanwhile is for the next turn.
 */
export class Turns implements AsyncDisposable {
  readonly #parts: Parts;
  readonly #lost: (reason: LeadershipLost) => void;
  #decisions: Decisions;
  #waiting: Waiting[] = [];
  #isDue = false;
  /** Decisions have failed, and are tried again then. */
  #undecidedUntilMs = 0;
  #alarm: Disposable | undefined;
  #running: Promise<void> | undefined;
  #ended: LeadershipLost | undefined;

  constructor(parts: Parts, lost: (reason: LeadershipLost) => void) {
    this.#parts = parts;
    this.#decisions = parts.decisions();
    this.#lost = lost;
  }

  /** Resolves when what `work` did is stored; what it throws refuses it alone. */
  async write<T>(work: Work<T>): Promise<{ result: T; revision: number }> {
    if (this.#ended !== undefined) throw this.#ended;
    const { promise, resolve, reject } = Promise.withResolvers<{ result: T; revision: number }>();
    let result: T;
    this.#waiting.push({
      run: (draft, now) => {
        result = draft.attempt((inner) => {
          const done = work(inner, now);
          refuseTooLarge(inner);
          return done;
        });
      },
      stored: (revision) => resolve({ result, revision }),
      failed: reject,
    });
    this.#running ??= this.#run();
    return await promise;
  }

  /** A turn for the decisions alone, such as the first one. */
  look(): void {
    if (this.#ended !== undefined) return;
    this.#isDue = true;
    this.#running ??= this.#run();
  }

  /** Refuses waiting work; a batch that is under way is completed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended ??= new LeadershipLost('this manager no longer leads the cluster', { isUndone: true });
    this.#alarm?.[Symbol.dispose]();
    await this.#running;
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // work that arrives at once shares the turn
    while (this.#waiting.length > 0 || this.#isDue) await this.#turn();
    this.#running = undefined;
  }

  async #turn(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#isDue = false;
    if (this.#ended !== undefined) {
      for (const { failed } of waiting) failed(this.#ended);
      return;
    }
    const { batches, clock, replica } = this.#parts;
    const draft = new Draft(replica);
    const now = clock.now();
    const done: Waiting[] = [];
    const next = waiting.values();
    while (draft.size < MAX_WRITTEN) {
      const { value: work } = next.next();
      if (work === undefined) break;
      try {
        work.run(draft, now);
        done.push(work);
      } catch (error) {
        work.failed(error);
      }
    }
    this.#waiting = [...next];
    try {
      const writes = draft.copy();
      const decided = this.#decide(draft, now);
      await batches.store((decided === undefined ? writes : draft).changes, (revision, changes) =>
        replica.apply({ revision, changes }),
      );
      for (const { stored } of done) stored(replica.revision);
      this.#wake(decided === undefined ? now.add({ seconds: SECONDS_AFTER_FAILURE }) : decided.again);
    } catch (error) {
      for (const { failed } of done) failed(error);
      this.#fail(error);
    }
  }

  /**
   * Decides what follows from the writes. Returns when to decide again, or undefined if that fails, such as by a bad record:
   * then only the writes are stored, and decisions begin anew a while later.
   */
  #decide(draft: Draft, now: Temporal.Instant): { again: Temporal.Instant | undefined } | undefined {
    if (performance.now() < this.#undecidedUntilMs) return undefined;
    try {
      return { again: this.#decisions.run(draft, now) };
    } catch (error) {
      this.#parts.log.error({ err: error }, 'the leader failed to plan the next turn, retrying');
      this.#decisions = this.#parts.decisions();
      this.#undecidedUntilMs = performance.now() + SECONDS_AFTER_FAILURE * 1000;
      return undefined;
    }
  }

  #wake(at: Temporal.Instant | undefined): void {
    this.#alarm?.[Symbol.dispose]();
    this.#alarm = undefined;
    if (at === undefined || this.#ended !== undefined) return;
    const { clock } = this.#parts;
    const milliseconds = Math.ceil(at.since(clock.now()).total('milliseconds'));
    this.#alarm = clock.after(Math.max(milliseconds, 0), () => this.look());
  }

  /** A turn that was not stored has not been: decisions begin anew with the records. */
  #fail(error: unknown): void {
    if (error instanceof LeadershipLost) {
      this.#ended = new LeadershipLost(error.message, { isUndone: true }); // what waits has not been begun
      this.#lost(error);
      return;
    }
    this.#parts.log.error({ err: error }, 'the leader could not complete a turn');
    this.#decisions = this.#parts.decisions();
    this.#wake(this.#parts.clock.now().add({ seconds: SECONDS_AFTER_FAILURE }));
  }
}

/** A record that etcd would refuse is refused here, so that it costs its own write only. */
function refuseTooLarge(draft: Draft): void {
  for (const { kind, record } of draft.changes) {
    if (record !== undefined && !isWithin(MAX_STORED_BYTES, record)) {
      throw new EngineError('invalid', `the ${kind} is too large to be stored: it may have ${MAX_STORED_BYTES} bytes`);
    }
  }
}

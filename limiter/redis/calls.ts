import type { LimitRules } from '../types.ts';
import { Batch } from './batch.ts';
import { type CallerHere, hasEnds, takeEnds } from './callers.ts';
import type { Operation } from './operation.ts';
import { NoAnswer } from './patience.ts';
import type { Server } from './server.ts';
import type { MarkedVerdict } from './wire.ts';

/**
 * Waiting requests are spread over this number of calls: while the server works on one, the next is already there,
 * and this process handles the answers of another. With fewer they wait for each other in turn.
 */
export const MAX_CALLS = 4;
/** While two calls are under way, a further call needs this many operations. */
export const MIN_CALL_SIZE = 8;
const CALLS_TO_STAY_AWAKE = 3;
/** Polling stops when no answers come: a server that stands still is not polled. */
const AWAKE_MS = 2;
/** How many calls may be under way when each has one caller. */
const MAX_SINGLE_CALLS = 256;

/** Listeners of a batch. */
type Told = Readonly<{
  /** Called before the batch is sent; it may still add operations. */
  leaves: (batch: Batch) => void;
  decided: (batch: Batch, verdicts: readonly MarkedVerdict[]) => void;
  failed: (batch: Batch, error: unknown) => void;
  /** Called when the batch was decided or failed, and the next one was sent. */
  over: () => void;
  /** Whether this process has nothing to do but to wait for the server. */
  onlyWaits: () => boolean;
}>;

/** The calls of the script. Operations that arrive while calls are under way are sent together in the next one. */
export class Calls {
  readonly #server: Server;
  /** Operations in a call; 1: each caller is a call of its own. */
  readonly #most: number;
  readonly #told: Told;
  #queue: Batch[] = [];
  #underWay = 0;
  #scheduled = false;
  #awake = false;
  #whenQuiet: (() => void) | undefined;
  #whenEmpty: (() => void) | undefined;

  constructor(server: Server, most: number, told: Told) {
    this.#server = server;
    this.#most = most;
    this.#told = told;
  }

  /** Puts the ends that wait, and an operation after them, into the next call. */
  add(caller: CallerHere, rules: LimitRules, operation?: Operation): void {
    let batch = this.#queue.at(-1);
    if (batch === undefined || batch.rules !== rules || !batch.hasRoom(caller, this.#most)) {
      batch = new Batch(rules);
      this.#queue.push(batch);
    }
    if (hasEnds(caller)) for (const end of takeEnds(caller)) batch.add(caller, end);
    if (operation !== undefined) batch.add(caller, operation);
    if (this.#scheduled) return;
    this.#scheduled = true;
    // After everything that has arrived in this turn: requests that came together are decided together.
    setImmediate(() => {
      this.#scheduled = false;
      this.pump();
    });
  }

  /** Sends waiting batches, as many as may be under way. */
  pump(): void {
    if (this.#whenQuiet !== undefined) {
      if (this.#underWay > 0) return;
      const work = this.#whenQuiet;
      this.#whenQuiet = undefined;
      work();
    }
    const single = this.#most === 1;
    while (this.#underWay < (single ? MAX_SINGLE_CALLS : MAX_CALLS)) {
      const batch = this.#queue[0];
      // A few operations among many that wait are no call of their own while two are under way.
      if (batch === undefined || (!single && this.#underWay > 1 && batch.size < MIN_CALL_SIZE)) break;
      this.#queue.shift();
      if (batch.size === 0) continue; // a renewal took all of it
      this.#told.leaves(batch);
      this.send(batch);
    }
    this.#stayAwake();
    if (this.#underWay === 0 && this.#queue.length === 0) this.#whenEmpty?.();
  }

  /** Sends a batch before all that wait. */
  send(batch: Batch): void {
    void this.#send(batch);
  }

  /** Runs `work` when no call is under way, before the next one: then this process knows all that the server knows. */
  whenQuiet(work: () => void): void {
    this.#whenQuiet = work;
    this.pump();
  }

  /** Takes the ends of these callers' requests out of the waiting batches; a map for each batch. */
  takeEnds(callers: ReadonlySet<CallerHere>): readonly ReadonlyMap<CallerHere, Operation[]>[] {
    return this.#queue.map((waiting) => waiting.takeEnds(callers));
  }

  /** Resolves when all that waits was sent, and answered or given up. */
  async drained(): Promise<void> {
    this.pump();
    if (this.#underWay === 0 && this.#queue.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#whenEmpty = resolve;
    await promise;
  }

  /**
   * While many calls are under way this process polls for their answers and does not sleep: waking it costs the server as
   * much as two requests, and is late. It sleeps where it has other work: that wakes it, and others need the core.
   */
  #stayAwake(): void {
    if (this.#awake || this.#underWay < CALLS_TO_STAY_AWAKE || !this.#told.onlyWaits()) return;
    if (performance.now() - this.#server.answeredAt > AWAKE_MS) return;
    this.#awake = true;
    setImmediate(() => {
      this.#awake = false;
      this.#stayAwake();
    });
  }

  async #send(batch: Batch): Promise<void> {
    this.#underWay += 1;
    batch.begin();
    try {
      this.#told.decided(batch, await this.#server.run(batch));
    } catch (error) {
      // Batches that wait for the same server would have to wait as long again.
      if (error instanceof NoAnswer) this.#dropUnreachable(error);
      this.#told.failed(batch, error);
    }
    batch.end();
    this.#underWay -= 1;
    this.pump();
    this.#told.over();
  }

  #dropUnreachable(error: unknown): void {
    const waiting = this.#queue;
    this.#queue = waiting.filter(({ shares }) => shares.every(({ caller }) => !this.#server.isAway(caller)));
    for (const other of waiting) if (!this.#queue.includes(other)) this.#told.failed(other, error);
  }
}

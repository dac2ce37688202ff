import type { Batch } from './batch.ts';
import { hasEnds, type CallerHere, takeEnds } from './callers.ts';

const ROUND_MS = 100;

/** When an end that was added has been sent, at the latest: two rounds of waiting, and one for a call to go along with. */
export const ENDS_SENT_WITHIN_MS = 3 * ROUND_MS;

/**
 * Ends of requests that wait for their caller's next operation: both together cost the server little more than one.
 *
 * After one to two rounds they go along with any call, and where there was none they are sent alone after the next.
 */
export class WaitingEnds {
  readonly #sendAlone: (caller: CallerHere) => void;
  readonly #mostInCall: number;
  #callers: CallerHere[] = [];
  #late: CallerHere[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(mostInCall: number, sendAlone: (caller: CallerHere) => void) {
    this.#mostInCall = mostInCall;
    this.#sendAlone = sendAlone;
  }

  add(caller: CallerHere): void {
    if (caller.listed) return;
    caller.listed = true;
    this.#callers.push(caller);
    this.#timer ??= setTimeout(() => this.#endRound(), ROUND_MS).unref();
  }

  /** As many as there are other operations: they must not hold these up. */
  goAlong(batch: Batch): void {
    for (let room = batch.size; room > 0; room -= 1) {
      const caller = this.#late.at(-1);
      if (caller === undefined) return;
      const own = caller.share?.batch ?? batch; // a caller is in one waiting call only
      if (!own.hasRoom(caller, this.#mostInCall)) return;
      this.#late.pop();
      for (const end of takeEnds(caller)) own.add(caller, end);
    }
  }

  /** Sends all, and waits for no more. */
  finish(): void {
    clearTimeout(this.#timer);
    for (const caller of [...this.#callers, ...this.#late]) this.#sendAlone(caller);
  }

  #endRound(): void {
    for (const caller of this.#late) this.#sendAlone(caller);
    this.#late = [];
    const callers = this.#callers;
    this.#callers = [];
    for (const caller of callers) {
      const waits = hasEnds(caller);
      caller.listed = waits && !caller.late;
      if (caller.listed) this.#callers.push(caller);
      else if (waits) this.#late.push(caller);
      caller.late = true;
    }
    const idle = this.#callers.length === 0 && this.#late.length === 0;
    this.#timer = idle ? undefined : setTimeout(() => this.#endRound(), ROUND_MS).unref();
  }
}

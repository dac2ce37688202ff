import type { Endpoints } from './endpoints.ts';
import type { Ask, CallerState, LimitRules, Verdict } from './types.ts';

/**
 * Where the counts live. One suite, `store.contract.ts`, holds all implementations to the same behaviour.
 *
 * A store decides at once (memory, SQLite) or later (Redis); a promise that rejects means that it did not answer.
 */
export interface LimitStore extends AsyncDisposable {
  /** The routes that it counts for. One of another store would be counted under a wrong name. */
  readonly endpoints: Endpoints;
  /** The store's time in epoch milliseconds, as far as it is known here. */
  nowMs(): number;
  /** One step for all limits: everything is spent, or nothing. */
  decide(ask: Ask): Verdict | Promise<Verdict>;
  /** Ends an admitted request: gives its place back and charges its time. Never throws. */
  release(ask: Ask, ticket: number, cpuSeconds: number): void;
  /** Charges an admitted request that goes on: its time so far, or points that were not known before. Never throws. */
  charge(ask: Ask, ticket: number, cpuSeconds: number, points: number): void;
  /** Ends an admitted request that was not this caller's: gives its place back and what it has spent. Never throws. */
  giveBack(ask: Ask, ticket: number, decidedMs: number): void;
  /** Changes what an admitted request has spent of the primary quota, in the window where it counts. Never throws. */
  recount(ask: Ask, ticket: number, decidedMs: number, change: number): void;
  /** Counts content that was created elsewhere, in the web interface; never refused, for it has happened. */
  chargeContent(key: string, count: number, rules: LimitRules): void | Promise<void>;
  /** Forgets what a caller has spent; its requests under way still count. */
  forget(key: string, rules: LimitRules): void | Promise<void>;
  /** Where processes share the store: told which callers any of them, this one included, has forgotten. */
  onForgotten?: (listener: (key: string) => void) => void;
  /** The windows of a caller that are open now, each step of a sliding one by itself; changes nothing. */
  peek(key: string): CallerState | Promise<CallerState>;
  /** Every caller with an open window or a request under way. */
  scan(): AsyncIterable<CallerState>;
}

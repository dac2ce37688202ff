import type { LimitStore } from '../limit-store.ts';
import { MAX_LIMIT } from '../rules.ts';
import type { Admission, Ask, Caller, Category, Endpoint, LimitName, LimitRules, Verdict } from '../types.ts';
import type { LimiterCounts } from './limiter-counts.ts';
import type { RunningRequests } from './running.ts';
import { enforcedLimit, shownLimit, windowSecondsOf } from './shown-limits.ts';

export const NOTHING_SHADOWED: readonly LimitName[] = [];

/** Most requests end before this: their time is charged once. */
const SHORTEST_STEP_SECONDS = 0.25;

/** Where a request was decided. */
export type Origin = Readonly<{
  store: LimitStore;
  counts: LimiterCounts;
  running: RunningRequests;
  unchecked: boolean;
}>;

/** A request on its way through the store, and the admission that it becomes: one object for each request. */
export class AdmittedRequest implements Admission, Ask {
  readonly caller: Caller;
  readonly endpoint: Endpoint;
  readonly points: number;
  readonly cost: number;
  readonly rules: LimitRules;
  readonly quota: number;
  readonly #origin: Origin;
  #spent = 0;
  /** Its cost by the upstream's answer. */
  #cost: number;
  #decidedMs = 0;
  #window = 0;
  reset = 0;
  shadowed = NOTHING_SHADOWED;
  /** Its place in the list of running requests. */
  runningAt = -1;
  /** Its admission; since `begin` the start of the work that goes on. */
  #startedMs = 0;
  /** Work before the last pause. Below 0: work on it has not begun. */
  #workedSeconds = -1;
  #chargedSeconds = 0;
  /** Below 0: not admitted, or ended. */
  #ticket = -1;

  constructor(caller: Caller, endpoint: Endpoint, points: number, cost: number, rules: LimitRules, origin: Origin) {
    this.caller = caller;
    this.endpoint = endpoint;
    this.points = points;
    this.cost = endpoint.primary ? cost : 0;
    this.rules = rules;
    this.quota = enforcedLimit(rules, caller, endpoint.category);
    this.#origin = origin;
    this.#cost = this.cost;
  }

  get allowed(): true {
    return true;
  }

  get unchecked(): boolean {
    return this.#origin.unchecked;
  }

  get key(): string {
    return this.caller.key;
  }

  get resource(): Category {
    return this.endpoint.category;
  }

  get limit(): number {
    return shownLimit(this.rules, this.caller, this.endpoint.category, this.#window);
  }

  get windowSeconds(): number {
    return windowSecondsOf(this.rules, this.endpoint.category, this.#window);
  }

  get used(): number {
    return this.quota === Infinity ? 0 : Math.min(this.#spent, this.limit);
  }

  get remaining(): number {
    return this.limit - this.used;
  }

  admit(verdict: Verdict, shadowed: readonly LimitName[]): void {
    this.#window = verdict.window;
    this.#spent = verdict.used;
    this.reset = verdict.reset;
    this.shadowed = shadowed;
    this.#startedMs = this.#decidedMs = verdict.nowMs;
    this.#ticket = verdict.ticket;
  }

  end(cpuSeconds: number = this.#seconds()): void {
    const ticket = this.#ticket;
    if (ticket < 0) return;
    this.#ticket = -1;
    this.#origin.running.delete(this);
    const rest = cpuSeconds - this.#chargedSeconds;
    // NaN would poison the count for a whole window; a clock that was set back gives a negative time.
    this.#origin.store.release(this, ticket, rest > 0 ? rest : 0);
  }

  begin(): void {
    if (this.#ticket < 0 || this.runningAt >= 0) return;
    this.#origin.running.add(this);
    this.#startedMs = this.#origin.running.time.now();
    if (this.#workedSeconds < 0) this.#workedSeconds = 0;
  }

  pause(): void {
    if (this.runningAt < 0) return;
    this.#workedSeconds = this.#seconds();
    this.#origin.running.delete(this);
  }

  stop(cpuSeconds: number = this.#seconds()): void {
    this.#origin.running.delete(this);
    this.#workedSeconds = cpuSeconds;
    this.#chargeUpTo(cpuSeconds);
  }

  /** Charges its time so far, unless the step is too short. */
  chargeSoFar(): void {
    const seconds = this.#seconds();
    if (seconds >= this.#chargedSeconds + SHORTEST_STEP_SECONDS) this.#chargeUpTo(seconds);
  }

  /** The time of work on it; where `begin` was not called, the time since its admission. */
  #seconds(): number {
    const { running, store } = this.#origin;
    const before = this.#workedSeconds;
    if (before < 0) return (store.nowMs() - this.#startedMs) / 1000;
    return this.runningAt < 0 ? before : before + (running.time.now() - this.#startedMs) / 1000;
  }

  #chargeUpTo(cpuSeconds: number): void {
    const step = cpuSeconds - this.#chargedSeconds;
    if (this.#ticket < 0 || !(step > 0)) return;
    this.#chargedSeconds = cpuSeconds;
    this.#origin.store.charge(this, this.#ticket, step, 0);
  }

  chargePoints(points: number): void {
    if (this.#ticket >= 0) this.#origin.store.charge(this, this.#ticket, 0, points);
  }

  setCost(cost: number): void {
    if (!Number.isInteger(cost) || cost < 0 || cost > MAX_LIMIT) {
      throw new RangeError(`a cost must be a whole number from 0 to ${MAX_LIMIT}, not ${cost}`);
    }
    const change = cost - this.#cost;
    if (this.#ticket < 0 || !this.endpoint.primary || change === 0) return;
    this.#cost = cost;
    this.#spent = Math.max(0, this.#spent + change);
    this.#origin.store.recount(this, this.#ticket, this.#decidedMs, change);
  }

  giveBack(): void {
    const ticket = this.#ticket;
    this.#ticket = -1;
    if (ticket < 0) return;
    this.#origin.running.delete(this);
    this.#origin.counts.admitted -= 1;
    this.#origin.store.giveBack(this, ticket, this.#decidedMs);
  }

  [Symbol.dispose](): void {
    this.end();
  }
}

import { Endpoints, scaleOf } from '../endpoints.ts';
import { endOfHour } from '../hour.ts';
import type { LimitStore } from '../limit-store.ts';
import type { Ask, CallerState, Endpoint, LimitRules, Verdict } from '../types.ts';
import { contentLimits, type EndpointLimits, limitsOf } from '../window-limits.ts';
import { findExceeded, refuse, shownOf, spend, spendTime } from './decision.ts';
import {
  addTo,
  changeSpent,
  freedIn,
  type CallerRecord,
  isIdle,
  newRecord,
  openWindows,
  putWindow,
  spentIn,
  type Time,
} from './windows.ts';

/** A shorter request is charged at the time of the last decision: reading the clock is a fifth of one. */
const SHORT_SECONDS = 0.005;

/** Callers that are checked for each new one, and forgotten if no window of theirs is open. */
const SWEPT_PER_CALLER = 2;

const NOTHING_SPENT = newRecord();

/** A caller as it is written down: each step of a sliding window by itself. */
export type StoredCaller = Pick<CallerState, 'key' | 'windows'>;

export type MemoryStoreOptions = Readonly<{
  /** Epoch milliseconds. */
  now?: () => number;
  /** Remember whose counts have changed, for `takeChanged`. */
  trackChanges?: boolean;
  /** Those of the store that this one stands in for. Default: none yet. */
  endpoints?: Endpoints;
}>;

/** The counts in the memory of one process: a record for each caller. No timers: each new caller sweeps two others. */
export class MemoryStore implements LimitStore {
  readonly endpoints: Endpoints;
  readonly #clock: () => number;
  readonly #records = new Map<string, CallerRecord>();
  #sweep = this.#records.entries();
  readonly #changed: Set<string> | undefined;
  /** The time of the last decision; one object for all of them. */
  readonly #time = { ms: 0, now: 0, opened: 0 };
  /** By the endpoint's id, under the rules of its last request. */
  readonly #limits: EndpointLimits[] = [];

  constructor({ now = Date.now, trackChanges = false, endpoints = new Endpoints() }: MemoryStoreOptions = {}) {
    this.#clock = now;
    this.endpoints = endpoints;
    this.#changed = trackChanges ? new Set() : undefined;
  }

  /** How many callers are remembered, including those whose windows are over but were not checked since. */
  get size(): number {
    return this.#records.size;
  }

  nowMs(): number {
    return this.#clock();
  }

  decide(ask: Ask): Verdict {
    const time = this.#readClock();
    const { key, endpoint } = ask;
    const limits = this.#limitsOf(endpoint, ask.rules);
    const known = this.#records.get(key) ?? NOTHING_SPENT;
    const used = spentIn(known, limits.quota, time);
    const exceeded = findExceeded(known, ask, limits, used, time);
    const shadowed = exceeded & limits.shadow;
    if (exceeded !== shadowed) {
      const refusal = refuse(known, ask, limits, exceeded & ~shadowed, time);
      return { ...refusal, shadowed, nowMs: time.ms, ticket: -1 };
    }
    const record = known === NOTHING_SPENT ? this.#insert(key, time) : known;
    spend(record, ask, limits, time);
    this.#changed?.add(key);
    const shown = limits.further.length === 0 ? undefined : shownOf(record, ask, limits, time);
    const reset = shown === undefined ? freedIn(record, limits.quota, 1, time) : shown.reset;
    return {
      refusedBy: -1,
      until: 0,
      shadowed,
      window: shown?.window ?? 0,
      used: shown?.used ?? used + ask.cost,
      // A request that costs nothing opens no window.
      reset: reset || endOfHour(time.now),
      nowMs: time.ms,
      ticket: 0,
    };
  }

  release(ask: Ask, ticket: number, cpuSeconds: number): void {
    const record = this.#records.get(ask.key);
    if (record === undefined) return; // this store was disposed
    record.underWay -= 1;
    if (cpuSeconds > 0) this.charge(ask, ticket, cpuSeconds, 0);
  }

  charge({ key, endpoint, rules }: Ask, _ticket: number, cpuSeconds: number, points: number): void {
    const record = this.#records.get(key);
    if (record === undefined) return;
    const time = cpuSeconds > SHORT_SECONDS || points > 0 ? this.#readClock() : this.#time;
    const limits = this.#limitsOf(endpoint, rules);
    if (cpuSeconds > 0) spendTime(record, limits, Math.round(cpuSeconds * 1e6), time);
    if (points > 0) addTo(record, limits.points, points, time);
    this.#changed?.add(key);
  }

  giveBack(ask: Ask, ticket: number, decidedMs: number): void {
    const { key, endpoint, points, cost, rules } = ask;
    const record = this.#records.get(key);
    if (record === undefined) return;
    record.underWay -= 1;
    if (cost > 0) this.recount(ask, ticket, decidedMs, -cost);
    const time = this.#readClock();
    const limits = this.#limitsOf(endpoint, rules);
    changeSpent(record, limits.points, -points, decidedMs, time);
    for (const window of limits.content) changeSpent(record, window, -1, decidedMs, time);
    this.#changed?.add(key);
  }

  recount({ key, endpoint, rules }: Ask, _ticket: number, decidedMs: number, change: number): void {
    const record = this.#records.get(key);
    if (record === undefined) return;
    const { quota, further } = this.#limitsOf(endpoint, rules);
    const time = this.#readClock();
    for (const window of [quota, ...further]) changeSpent(record, window, change, decidedMs, time);
    this.#changed?.add(key);
  }

  chargeContent(key: string, count: number, rules: LimitRules): void {
    const time = this.#readClock();
    const record = this.#records.get(key) ?? this.#insert(key, time);
    for (const window of contentLimits(rules)) addTo(record, window, count, time);
    this.#changed?.add(key);
  }

  forget(key: string): void {
    const record = this.#records.get(key);
    if (record !== undefined) record.windows = newRecord().windows; // the record stays: requests may be under way
    this.#changed?.add(key);
  }

  peek(key: string): CallerState {
    const record = this.#records.get(key) ?? NOTHING_SPENT;
    const windows = openWindows(record, this.#readClock()).map(({ id, used, end }) => {
      return { name: this.endpoints.windowName(id), used: used / scaleOf(id), reset: end };
    });
    return { key, underWay: record.underWay, windows };
  }

  async *scan(): AsyncGenerator<CallerState> {
    for (const key of this.#records.keys()) {
      const state = this.peek(key);
      if (state.windows.length > 0 || state.underWay > 0) yield state;
    }
  }

  /** Returns the callers whose counts have changed since the last call, for a store. */
  takeChanged(): StoredCaller[] {
    const callers = Array.from(this.#changed ?? [], (key) => this.peek(key));
    this.#changed?.clear();
    return callers;
  }

  /** Puts back what `takeChanged` gave out, perhaps in another process. Windows of unknown names are left out. */
  restore({ key, windows }: StoredCaller): void {
    const time = this.#readClock();
    const record = this.#records.get(key) ?? this.#insert(key, time);
    for (const { name, used, reset } of windows) {
      const id = this.endpoints.windowId(name);
      if (id !== undefined) putWindow(record, id, Math.round(used * scaleOf(id)), reset, time);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#records.clear();
  }

  #readClock(): Time {
    this.#time.ms = this.#clock();
    this.#time.now = (this.#time.ms / 1000) >>> 0;
    this.#time.opened = this.#time.now * 1000 === this.#time.ms ? this.#time.now : this.#time.now + 1;
    return this.#time;
  }

  #limitsOf(endpoint: Endpoint, rules: LimitRules): EndpointLimits {
    const known = this.#limits[endpoint.id];
    if (known?.endpoint === endpoint && known.rules === rules) return known;
    const further = (seconds: number): number => this.endpoints.furtherWindow(endpoint.category, seconds).id;
    return (this.#limits[endpoint.id] = limitsOf(endpoint, rules, { own: endpoint.id, further }));
  }

  #insert(key: string, time: Time): CallerRecord {
    for (let swept = 0; swept < SWEPT_PER_CALLER; swept += 1) {
      const { value, done } = this.#sweep.next();
      if (done === true) this.#sweep = this.#records.entries();
      else if (isIdle(value[1], time) && this.#changed?.has(value[0]) !== true) this.#records.delete(value[0]);
    }
    const record = newRecord();
    this.#records.set(key, record);
    return record;
  }
}

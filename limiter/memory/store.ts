import { Endpoints } from '../endpoints.ts';
import { endOfHour } from '../hour.ts';
import type { LimitStore } from '../limit-store.ts';
import { defaultRules } from '../rules.ts';
import { type Ask, type CallerState, type Endpoint, type LimitRules, type Verdict } from '../types.ts';
import { CallerRecords, type StoredCaller } from './caller-records.ts';
import { type FlatRules, flatten, type Span } from './flat-rules.ts';
import {
  CHUNK_MASK,
  CORE,
  CPU,
  EPOCH_SECONDS,
  GRAPHQL_CPU,
  HOUR,
  isOpen,
  MAX_SIZE,
  MINUTE,
  type Slot,
  UNDER_WAY,
} from './record.ts';
import {
  CONCURRENT_BIT,
  CPU_BIT,
  GRAPHQL_CPU_BIT,
  HOUR_BIT,
  MINUTE_BIT,
  POINTS_BIT,
  PRIMARY_BIT,
  refuse,
} from './refusal.ts';
import { EMPTY } from './slab.ts';
import { takeBack } from './take-back.ts';

/**
 * A request that took no longer is charged at the time of the last decision: to read the clock is a fifth of a decision.
 * Where nothing was decided since the window ended, that little is not charged to the next one.
 */
const SHORT_SECONDS = 0.005;

export type MemoryStoreOptions = Readonly<{
  /** Epoch milliseconds. */
  now?: () => number;
  /** Remember whose counts have changed, for `takeChanged`. */
  trackChanges?: boolean;
  /** Those of the store that this one stands in for. Default: none yet. */
  endpoints?: Endpoints;
}>;

/**
 * The counts in the memory of one process: a caller is one entry of a table and 64 bytes, and a decision on all limits
 * is one look-up.
 *
 * No timers: each new caller makes the store look at two others and forget those whose windows are all over.
 */
export class MemoryStore implements LimitStore {
  readonly endpoints: Endpoints;
  readonly #clock: () => number;
  readonly #records: CallerRecords;
  readonly #tracking: boolean;
  /** Filled and returned by each decision: the caller reads it before the next one. */
  readonly #verdict = { refusedBy: -1, until: 0, shadowed: 0, used: 0, reset: 0, nowMs: 0, ticket: -1 };
  /** The second that is under way, counted from `EPOCH_SECONDS`: to divide by a thousand each time takes a twentieth of a decision. */
  #now = 0;
  #nowMs = EPOCH_SECONDS * 1000;
  /** When a window that begins now is said to begin: its end is a whole second, and never early. */
  #opened = 0;
  #rules = defaultRules;
  #flat = flatten(defaultRules);

  constructor({ now = Date.now, trackChanges = false, endpoints = new Endpoints() }: MemoryStoreOptions = {}) {
    this.#clock = now;
    this.endpoints = endpoints;
    this.#records = new CallerRecords(endpoints, trackChanges);
    this.#tracking = trackChanges;
  }

  /** How many callers are remembered, including those whose windows are over but were not checked since. */
  get size(): number {
    return this.#records.size;
  }

  nowMs(): number {
    return this.#clock();
  }

  decide(ask: Ask): Verdict {
    const verdict = this.#verdict;
    verdict.nowMs = this.#readClock();
    const { endpoint } = ask;
    const rules = this.#flatRules(ask.rules);
    const known = this.#records.findAsking(ask);
    const words = this.#records.chunk(known);
    const at = known & CHUNK_MASK;
    const used = this.#usedOf(endpoint, rules, words, at);
    let exceeded = this.#exceeded(ask, rules, words, at);
    if (endpoint.primary && used >= ask.quota) exceeded |= PRIMARY_BIT;

    const shadow = rules.shadow | endpoint.shadow;
    const refusing = exceeded & ~shadow;
    verdict.shadowed = exceeded & shadow;
    verdict.used = used;
    if (refusing !== 0)
      refuse(verdict, refusing, ask, {
        windows: this.#records.windows,
        rules,
        words,
        at,
        now: this.#now,
        opened: this.#opened,
      });
    else this.#spend(ask, rules, known === EMPTY ? this.#records.insert(ask.key, this.#now) : known);
    return verdict;
  }

  release({ key, endpoint, rules }: Ask, ticket: number, cpuSeconds: number): void {
    const words = this.#records.chunk(ticket);
    const at = ticket & CHUNK_MASK;
    words[at + UNDER_WAY]! -= 1;
    if (cpuSeconds === 0) return;
    if (cpuSeconds > SHORT_SECONDS) this.#readClock();
    this.#chargeTime(endpoint, rules, words, at, cpuSeconds);
    if (this.#tracking) this.#records.markChanged(key, words, at);
  }

  charge({ key, endpoint, rules }: Ask, ticket: number, cpuSeconds: number, points: number): void {
    const words = this.#records.chunk(ticket);
    const at = ticket & CHUNK_MASK;
    this.#readClock();
    if (cpuSeconds > 0) this.#chargeTime(endpoint, rules, words, at, cpuSeconds);
    if (points > 0) this.#addPoints(endpoint, this.#flatRules(rules), words, at, points);
    if (this.#tracking) this.#records.markChanged(key, words, at);
  }

  giveBack(ask: Ask, ticket: number): void {
    const words = this.#records.chunk(ticket);
    const at = ticket & CHUNK_MASK;
    words[at + UNDER_WAY]! -= 1;
    this.#readClock();
    takeBack(this.#records.windows, words, at, ask, this.#flatRules(ask.rules), this.#now);
    if (this.#tracking) this.#records.markChanged(ask.key, words, at);
  }

  chargeContent(key: string, count: number, rules: LimitRules): void {
    this.#readClock();
    const known = this.#records.find(key);
    const record = known === EMPTY ? this.#records.insert(key, this.#now) : known;
    const words = this.#records.chunk(record);
    const at = record & CHUNK_MASK;
    const { minute, hour } = this.#flatRules(rules);
    this.#add(words, at, MINUTE, count, minute);
    this.#add(words, at, HOUR, count, hour);
    if (this.#tracking) this.#records.markChanged(key, words, at);
  }

  forget(key: string): void {
    this.#records.closeWindows(key);
  }

  peek(key: string): CallerState {
    this.#readClock();
    return this.#records.stateOf(key, this.#records.find(key), this.#now);
  }

  async *scan(): AsyncGenerator<CallerState> {
    yield* this.#records.states(() => {
      this.#readClock();
      return this.#now;
    });
  }

  /** Returns the callers whose counts have changed since the last call, for a store. */
  takeChanged(): StoredCaller[] {
    this.#readClock();
    return this.#records.takeChanged(this.#now);
  }

  /** Puts back what `takeChanged` gave out, perhaps in another process. Windows of unknown names are left out. */
  restore(caller: StoredCaller): void {
    this.#readClock();
    this.#records.restore(caller, this.#now);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#records.clear();
  }

  /** Points spent of the endpoint's category. */
  #usedOf({ categoryIndex }: Endpoint, rules: FlatRules, words: Int32Array, at: number): number {
    const { windows } = this.#records;
    const span = rules.categories[categoryIndex]!;
    return categoryIndex === CORE.id
      ? windows.spent(words, at, CORE, this.#now, span)
      : windows.spentOf(words, at, categoryIndex, this.#now, span);
  }

  /** The limits except the primary one that have no room for this request. */
  #exceeded({ endpoint, points }: Ask, rules: FlatRules, words: Int32Array, at: number): number {
    const { windows } = this.#records;
    const now = this.#now;
    let exceeded = 0;
    if (points > 0) {
      const limit = endpoint.graphql ? rules.graphqlPoints : rules.restPoints;
      const span = endpoint.graphql ? rules.graphql : rules.rest;
      if (windows.spentOf(words, at, endpoint.id, now, span) + points > limit) exceeded = POINTS_BIT;
    }
    if (words[at + UNDER_WAY]! >= rules.concurrent) exceeded |= CONCURRENT_BIT;
    // Nothing is spent in a fixed window that is not open: even a limit of 0 refuses only once it is open.
    const cpuEnd = words[at + CPU.end]!;
    if (rules.cpu.step > 0 || isOpen(cpuEnd, now, rules.cpu)) {
      if (windows.spent(words, at, CPU, now, rules.cpu) >= rules.cpuMicros) exceeded |= CPU_BIT;
      if (endpoint.graphql && windows.spent(words, at, GRAPHQL_CPU, now, rules.cpu) >= rules.graphqlMicros) {
        exceeded |= GRAPHQL_CPU_BIT;
      }
    }
    if (!endpoint.content) return exceeded;
    if (windows.spent(words, at, MINUTE, now, rules.minute) >= rules.minuteLimit) exceeded |= MINUTE_BIT;
    if (windows.spent(words, at, HOUR, now, rules.hour) >= rules.hourLimit) exceeded |= HOUR_BIT;
    const { contentPerMinute, contentPerHour, id } = endpoint;
    if (contentPerMinute !== Infinity && windows.spentOf(words, at, id + 1, now, rules.minute) >= contentPerMinute) {
      exceeded |= MINUTE_BIT;
    }
    if (contentPerHour !== Infinity && windows.spentOf(words, at, id + 2, now, rules.hour) >= contentPerHour) {
      exceeded |= HOUR_BIT;
    }
    return exceeded;
  }

  /** Admitted: all the counts at once. */
  #spend(ask: Ask, rules: FlatRules, record: number): void {
    const { endpoint, points } = ask;
    const { windows } = this.#records;
    const words = this.#records.chunk(record);
    const at = record & CHUNK_MASK;
    const verdict = this.#verdict;
    const { categoryIndex } = endpoint;
    const span = rules.categories[categoryIndex]!;
    const now = this.#now;
    const opened = this.#opened;
    if (endpoint.primary) {
      if (categoryIndex === CORE.id) windows.add(words, at, CORE, 1, now, opened, span);
      else windows.addTo(words, at, categoryIndex, 1, now, opened, span);
      verdict.used += 1;
    }
    const end =
      categoryIndex === CORE.id
        ? windows.end(words, at, CORE, now, span)
        : windows.freed(words, at, categoryIndex, now, span, 1);
    // A request that costs nothing opens no window.
    verdict.reset = end === 0 ? endOfHour(now + EPOCH_SECONDS) : end + EPOCH_SECONDS;
    if (points > 0) {
      const pointSpan = endpoint.graphql ? rules.graphql : rules.rest;
      windows.addTo(words, at, endpoint.id, points, now, opened, pointSpan);
    }
    words[at + UNDER_WAY]! += 1;
    if (rules.cpu.step === 0) this.#openTime(words, at, rules.cpu);
    if (endpoint.content) {
      const { minute, hour } = rules;
      windows.add(words, at, MINUTE, 1, now, opened, minute);
      windows.add(words, at, HOUR, 1, now, opened, hour);
      if (endpoint.contentPerMinute !== Infinity) windows.addTo(words, at, endpoint.id + 1, 1, now, opened, minute);
      if (endpoint.contentPerHour !== Infinity) windows.addTo(words, at, endpoint.id + 2, 1, now, opened, hour);
    }
    if (this.#tracking) this.#records.markChanged(ask.key, words, at);
    verdict.refusedBy = -1;
    verdict.until = 0;
    verdict.ticket = record;
  }

  #chargeTime({ graphql }: Endpoint, rules: LimitRules, words: Int32Array, at: number, cpuSeconds: number): void {
    const { cpu } = this.#flatRules(rules);
    const micros = Math.min(MAX_SIZE, Math.round(cpuSeconds * 1e6)) | 0;
    if (cpu.step === 0) this.#openTime(words, at, cpu);
    this.#add(words, at, CPU, micros, cpu);
    if (graphql) this.#add(words, at, GRAPHQL_CPU, micros, cpu);
  }

  /** All of it begins together. */
  #openTime(words: Int32Array, at: number, span: Span): void {
    if (isOpen(words[at + CPU.end]!, this.#now, span)) return;
    words[at + CPU.used] = 0;
    words[at + GRAPHQL_CPU.used] = 0;
    words[at + CPU.end] = this.#opened + span.seconds;
  }

  #addPoints({ id, graphql }: Endpoint, rules: FlatRules, words: Int32Array, at: number, points: number): void {
    const span = graphql ? rules.graphql : rules.rest;
    this.#records.windows.addTo(words, at, id, points, this.#now, this.#opened, span);
  }

  #add(words: Int32Array, at: number, slot: Slot, amount: number, span: Span): void {
    this.#records.windows.add(words, at, slot, amount, this.#now, this.#opened, span);
  }

  #readClock(): number {
    const nowMs = this.#clock();
    if (nowMs < this.#nowMs || nowMs >= this.#nowMs + 1000) {
      this.#now = Math.floor(nowMs / 1000) - EPOCH_SECONDS;
      this.#nowMs = (this.#now + EPOCH_SECONDS) * 1000;
    }
    this.#opened = this.#nowMs === nowMs ? this.#now : this.#now + 1;
    return nowMs;
  }

  /** Rules are never changed, only replaced. */
  #flatRules(rules: LimitRules): FlatRules {
    if (rules !== this.#rules) {
      this.#rules = rules;
      this.#flat = flatten(rules);
    }
    return this.#flat;
  }
}

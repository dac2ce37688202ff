import { endOfHour } from '../hour.ts';
import { defaultRules } from '../rules.ts';
import {
  type Ask,
  type CallerState,
  type Endpoint,
  type LimitRules,
  LIMITS,
  type LimitStore,
  type Verdict,
} from '../types.ts';
import { CallerRecords } from './caller-records.ts';
import { type FlatRules, flatten } from './flat-rules.ts';
import {
  CORE_USED,
  CORE_END,
  MINUTE_USED,
  MINUTE_END,
  HOUR_USED,
  HOUR_END,
  CPU_MICROS,
  GRAPHQL_MICROS,
  CPU_END,
  MARK,
  UNDER_WAY,
  USED,
  END,
  EPOCH_SECONDS,
  CHUNK_MASK,
  LARGEST,
  isOpen,
  spent,
  add,
  subtract,
} from './record.ts';
import { EMPTY } from './slab.ts';

const PRIMARY_BIT = 1 << LIMITS.indexOf('primary');
const POINTS_BIT = 1 << LIMITS.indexOf('points');
const CONCURRENT_BIT = 1 << LIMITS.indexOf('concurrent');
const CPU_BIT = 1 << LIMITS.indexOf('cpu');
const GRAPHQL_CPU_BIT = 1 << LIMITS.indexOf('graphql-cpu');
const MINUTE_BIT = 1 << LIMITS.indexOf('content-minute');
const HOUR_BIT = 1 << LIMITS.indexOf('content-hour');

export type MemoryStoreOptions = Readonly<{
  /** Epoch milliseconds. */
  now?: () => number;
  /** Remember whose counts have changed, for `takeChanged`. */
  trackChanges?: boolean;
}>;

/**
 * The counts in the memory of one process: a caller is one entry of a map and 64 bytes, and a decision on all limits
 * is one look-up.
 *
 * No timers: each new caller makes the store look at two others and forget those whose windows are all over.
 */
export class MemoryStore implements LimitStore {
  readonly #now: () => number;
  readonly #records: CallerRecords;
  readonly #tracking: boolean;
  /** Filled and returned by each decision: the caller reads it before the next one. */
  readonly #verdict = { refusedBy: -1, until: 0, shadowed: 0, used: 0, reset: 0, nowMs: 0, ticket: -1 };
  /** The second of the last decision: to divide by a thousand each time takes a twentieth of it. */
  #second = 0;
  #secondMs = EPOCH_SECONDS * 1000;
  #rules = defaultRules;
  #flat = flatten(defaultRules);

  constructor({ now = Date.now, trackChanges = false }: MemoryStoreOptions = {}) {
    this.#now = now;
    this.#records = new CallerRecords(trackChanges);
    this.#tracking = trackChanges;
  }

  /** How many callers are remembered, those included whose windows are over but were not looked at since. */
  get size(): number {
    return this.#records.size;
  }

  nowMs(): number {
    return this.#now();
  }

  decide(ask: Ask): Verdict {
    const nowMs = this.#now();
    if (nowMs < this.#secondMs || nowMs >= this.#secondMs + 1000) this.#beginSecond(nowMs);
    const now = this.#second;
    // When a window that starts now is said to start: its end is a whole second, and never early.
    const opened = this.#secondMs === nowMs ? now : now + 1;
    const { endpoint, points } = ask;
    const { categoryIndex } = endpoint;
    const rules = this.#flatRules(ask.rules);
    // Where this caller was found last: among a million of them each look elsewhere is waiting for memory. It may have
    // been in another store: then there is no such chunk, or another mark.
    const { caller } = ask;
    let known = caller?.place ?? 0;
    let words = this.#records.chunk(known);
    let at = known & CHUNK_MASK;
    if (known === 0 || words?.[at + MARK] !== caller!.mark) {
      known = this.#records.findAnew(ask.key, caller);
      words = this.#records.chunk(known);
      at = known & CHUNK_MASK;
    }
    const seconds = rules.categorySeconds[categoryIndex]!;
    const used =
      categoryIndex === 0
        ? spent(words, at + CORE_USED, at + CORE_END, now, seconds)
        : this.#records.spentOf(words, at, categoryIndex, now, seconds);

    let exceeded = 0;
    if (endpoint.primary && used >= ask.quota) exceeded = PRIMARY_BIT;
    if (points > 0) {
      const limit = endpoint.graphql ? rules.graphqlPoints : rules.restPoints;
      const pointSeconds = endpoint.graphql ? rules.graphqlSeconds : rules.restSeconds;
      if (this.#records.spentOf(words, at, endpoint.id, now, pointSeconds) + points > limit) exceeded |= POINTS_BIT;
    }
    if (words[at + UNDER_WAY]! >= rules.concurrent) exceeded |= CONCURRENT_BIT;
    const cpuOpen = isOpen(words[at + CPU_END]!, now, rules.cpuSeconds);
    if (cpuOpen) {
      if (words[at + CPU_MICROS]! >= rules.cpuMicros) exceeded |= CPU_BIT;
      if (endpoint.graphql && words[at + GRAPHQL_MICROS]! >= rules.graphqlMicros) exceeded |= GRAPHQL_CPU_BIT;
    }
    if (endpoint.content) exceeded |= this.#exceededContent(endpoint, rules, words, at, now);

    const refusing = exceeded & ~rules.shadow;
    const verdict = this.#verdict;
    verdict.nowMs = nowMs;
    verdict.shadowed = exceeded & rules.shadow;
    if (refusing !== 0) this.#refuse(endpoint, rules, words, at, now, opened, refusing, used);
    else if (known !== EMPTY) this.#spend(ask, rules, known, words, at, now, opened, used);
    else {
      const record = this.#records.insert(ask.key, now);
      this.#spend(ask, rules, record, this.#records.chunk(record), record & CHUNK_MASK, now, opened, 0);
    }
    return verdict;
  }

  release({ key, endpoint, rules }: Ask, ticket: number, cpuSeconds: number): void {
    const words = this.#records.chunk(ticket);
    const at = ticket & CHUNK_MASK;
    words[at + UNDER_WAY]! -= 1;
    if (cpuSeconds === 0) return;
    this.#chargeTime(endpoint, rules, words, at, cpuSeconds);
    if (this.#tracking) this.#records.markChanged(key, words, at);
  }

  charge({ key, endpoint, rules }: Ask, ticket: number, cpuSeconds: number, points: number): void {
    const words = this.#records.chunk(ticket);
    const at = ticket & CHUNK_MASK;
    if (cpuSeconds > 0) this.#chargeTime(endpoint, rules, words, at, cpuSeconds);
    if (points > 0) {
      const nowMs = this.#now();
      const now = Math.floor(nowMs / 1000) - EPOCH_SECONDS;
      const { graphqlSeconds, restSeconds } = this.#flatRules(rules);
      const seconds = endpoint.graphql ? graphqlSeconds : restSeconds;
      this.#records.addTo(ticket, endpoint.id, points, now, Math.ceil(nowMs / 1000) - EPOCH_SECONDS, seconds);
    }
    if (this.#tracking) this.#records.markChanged(key, words, at);
  }

  giveBack({ key, endpoint, points, rules }: Ask, ticket: number): void {
    const words = this.#records.chunk(ticket);
    const at = ticket & CHUNK_MASK;
    words[at + UNDER_WAY]! -= 1;
    const now = this.#seconds();
    const { categorySeconds, minuteSeconds, hourSeconds, restSeconds, graphqlSeconds } = this.#flatRules(rules);
    const seconds = categorySeconds[endpoint.categoryIndex]!;
    const cost = endpoint.primary ? 1 : 0;
    if (endpoint.categoryIndex === 0) subtract(words, at + CORE_USED, at + CORE_END, cost, now, seconds);
    else this.#records.takeFrom(ticket, endpoint.categoryIndex, cost, now, seconds);
    this.#records.takeFrom(ticket, endpoint.id, points, now, endpoint.graphql ? graphqlSeconds : restSeconds);
    if (endpoint.content) {
      subtract(words, at + MINUTE_USED, at + MINUTE_END, 1, now, minuteSeconds);
      subtract(words, at + HOUR_USED, at + HOUR_END, 1, now, hourSeconds);
      this.#records.takeFrom(ticket, endpoint.id + 1, 1, now, minuteSeconds);
      this.#records.takeFrom(ticket, endpoint.id + 2, 1, now, hourSeconds);
    }
    if (this.#tracking) this.#records.markChanged(key, words, at);
  }

  #chargeTime(endpoint: Endpoint, rules: LimitRules, words: Int32Array, at: number, cpuSeconds: number): void {
    const nowMs = this.#now();
    const windowSeconds = this.#flatRules(rules).cpuSeconds;
    // As `isOpen`, without a division.
    const endMs = (words[at + CPU_END]! + EPOCH_SECONDS) * 1000;
    if (endMs <= nowMs || endMs - (windowSeconds + 1) * 1000 > nowMs) {
      words[at + CPU_END] = Math.ceil(nowMs / 1000) - EPOCH_SECONDS + windowSeconds;
      words[at + CPU_MICROS] = 0;
      words[at + GRAPHQL_MICROS] = 0;
    }
    const micros = Math.min(LARGEST, Math.round(cpuSeconds * 1e6));
    words[at + CPU_MICROS] = Math.min(LARGEST, words[at + CPU_MICROS]! + micros);
    if (endpoint.graphql) words[at + GRAPHQL_MICROS] = Math.min(LARGEST, words[at + GRAPHQL_MICROS]! + micros);
  }

  chargeContent(key: string, count: number, rules: LimitRules): void {
    const nowMs = this.#now();
    const now = Math.floor(nowMs / 1000) - EPOCH_SECONDS;
    const known = this.#records.find(key);
    const record = known === EMPTY ? this.#records.insert(key, now) : known;
    const words = this.#records.chunk(record);
    const at = record & CHUNK_MASK;
    const opened = Math.ceil(nowMs / 1000) - EPOCH_SECONDS;
    add(words, at + MINUTE_USED, at + MINUTE_END, count, now, opened, rules.contentPerMinute.windowSeconds);
    add(words, at + HOUR_USED, at + HOUR_END, count, now, opened, rules.contentPerHour.windowSeconds);
    if (this.#tracking) this.#records.markChanged(key, words, at);
  }

  forget(key: string): void {
    this.#records.closeWindows(key);
  }

  peek(key: string): CallerState {
    return this.#records.stateOf(key, this.#records.find(key), this.#seconds());
  }

  async *scan(): AsyncGenerator<CallerState> {
    yield* this.#records.states(() => this.#seconds());
  }

  /** The states of the callers whose counts have changed since the last call. */
  takeChanged(): CallerState[] {
    return this.#records.takeChanged(this.#seconds());
  }

  /** Puts back what `takeChanged` gave out, perhaps in another process. Windows of unknown names are left out. */
  restore(state: CallerState): void {
    this.#records.restore(state, this.#seconds());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#records.clear();
  }

  #exceededContent(endpoint: Endpoint, rules: FlatRules, words: Int32Array, at: number, now: number): number {
    const { minuteLimit, minuteSeconds, hourLimit, hourSeconds } = rules;
    let exceeded = 0;
    if (spent(words, at + MINUTE_USED, at + MINUTE_END, now, minuteSeconds) >= minuteLimit) exceeded = MINUTE_BIT;
    if (spent(words, at + HOUR_USED, at + HOUR_END, now, hourSeconds) >= hourLimit) exceeded |= HOUR_BIT;
    if (endpoint.contentPerMinute !== Infinity) {
      const own = this.#records.spentOf(words, at, endpoint.id + 1, now, minuteSeconds);
      if (own >= endpoint.contentPerMinute) exceeded |= MINUTE_BIT;
    }
    if (endpoint.contentPerHour !== Infinity) {
      const own = this.#records.spentOf(words, at, endpoint.id + 2, now, hourSeconds);
      if (own >= endpoint.contentPerHour) exceeded |= HOUR_BIT;
    }
    return exceeded;
  }

  #beginSecond(nowMs: number): void {
    this.#second = Math.floor(nowMs / 1000) - EPOCH_SECONDS;
    this.#secondMs = (this.#second + EPOCH_SECONDS) * 1000;
  }

  #seconds(): number {
    return Math.floor(this.#now() / 1000) - EPOCH_SECONDS;
  }

  /** Nothing is spent; says which limit it was and how long it lasts: the primary one, else the longest. */
  #refuse(
    endpoint: Endpoint,
    rules: FlatRules,
    words: Int32Array,
    at: number,
    now: number,
    opened: number,
    refusing: number,
    used: number,
  ): void {
    const verdict = this.#verdict;
    // A limit that is smaller than the cost of one request refuses it even when nothing was spent.
    const endOr = (end: number, seconds: number): number => (isOpen(end, now, seconds) ? end : opened + seconds);

    const categoryEnd =
      endpoint.categoryIndex === 0 ? words[at + CORE_END]! : this.#records.endOf(words, at, endpoint.categoryIndex);
    verdict.used = used;
    verdict.reset = endOr(categoryEnd, rules.categorySeconds[endpoint.categoryIndex]!) + EPOCH_SECONDS;
    verdict.ticket = -1;
    verdict.until = 0;
    if ((refusing & PRIMARY_BIT) !== 0) {
      verdict.refusedBy = 0;
      verdict.until = verdict.reset;
      return;
    }
    const lasts = (bit: number, end: number): void => {
      if ((refusing & bit) === 0 || (verdict.until !== 0 && end + EPOCH_SECONDS <= verdict.until)) return;
      verdict.refusedBy = 31 - Math.clz32(bit);
      verdict.until = end + EPOCH_SECONDS;
    };
    if ((refusing & CONCURRENT_BIT) !== 0) verdict.refusedBy = 31 - Math.clz32(CONCURRENT_BIT);
    const pointSeconds = endpoint.graphql ? rules.graphqlSeconds : rules.restSeconds;
    lasts(POINTS_BIT, endOr(this.#records.endOf(words, at, endpoint.id), pointSeconds));
    lasts(CPU_BIT, words[at + CPU_END]!);
    lasts(GRAPHQL_CPU_BIT, words[at + CPU_END]!);
    const { minuteLimit, minuteSeconds, hourLimit, hourSeconds } = rules;
    // The general limit or the endpoint's own, whichever is used up.
    if (spent(words, at + MINUTE_USED, at + MINUTE_END, now, minuteSeconds) >= minuteLimit) {
      lasts(MINUTE_BIT, endOr(words[at + MINUTE_END]!, minuteSeconds));
    }
    if (this.#records.spentOf(words, at, endpoint.id + 1, now, minuteSeconds) >= endpoint.contentPerMinute) {
      lasts(MINUTE_BIT, endOr(this.#records.endOf(words, at, endpoint.id + 1), minuteSeconds));
    }
    if (spent(words, at + HOUR_USED, at + HOUR_END, now, hourSeconds) >= hourLimit) {
      lasts(HOUR_BIT, endOr(words[at + HOUR_END]!, hourSeconds));
    }
    if (this.#records.spentOf(words, at, endpoint.id + 2, now, hourSeconds) >= endpoint.contentPerHour) {
      lasts(HOUR_BIT, endOr(this.#records.endOf(words, at, endpoint.id + 2), hourSeconds));
    }
  }

  /** Admitted: all the counts at once. `words` and `at` are where `record` lies. */
  #spend(
    ask: Ask,
    rules: FlatRules,
    record: number,
    words: Int32Array,
    at: number,
    now: number,
    opened: number,
    used: number,
  ): void {
    const { endpoint, points } = ask;
    const verdict = this.#verdict;
    const cost = endpoint.primary ? 1 : 0;
    const seconds = rules.categorySeconds[endpoint.categoryIndex]!;
    if (cost === 0) {
      // What costs nothing opens no window.
      const { categoryIndex } = endpoint;
      const end = categoryIndex === 0 ? words[at + CORE_END]! : this.#records.endOf(words, at, categoryIndex);
      const open = isOpen(end, now, seconds);
      verdict.used = open ? used : 0;
      verdict.reset = open ? end + EPOCH_SECONDS : endOfHour(now + EPOCH_SECONDS);
    } else if (endpoint.categoryIndex === 0) {
      add(words, at + CORE_USED, at + CORE_END, cost, now, opened, seconds);
      verdict.used = words[at + CORE_USED]!;
      verdict.reset = words[at + CORE_END]! + EPOCH_SECONDS;
    } else {
      const window = this.#records.addTo(record, endpoint.categoryIndex, cost, now, opened, seconds);
      const others = this.#records.chunk(window);
      verdict.used = others[(window & CHUNK_MASK) + USED]!;
      verdict.reset = others[(window & CHUNK_MASK) + END]! + EPOCH_SECONDS;
    }
    if (points > 0) {
      const pointSeconds = endpoint.graphql ? rules.graphqlSeconds : rules.restSeconds;
      this.#records.addTo(record, endpoint.id, points, now, opened, pointSeconds);
    }
    words[at + UNDER_WAY]! += 1;
    if (!isOpen(words[at + CPU_END]!, now, rules.cpuSeconds)) {
      words[at + CPU_MICROS] = 0;
      words[at + GRAPHQL_MICROS] = 0;
      words[at + CPU_END] = opened + rules.cpuSeconds;
    }
    if (endpoint.content) {
      const { minuteSeconds, hourSeconds } = rules;
      add(words, at + MINUTE_USED, at + MINUTE_END, 1, now, opened, minuteSeconds);
      add(words, at + HOUR_USED, at + HOUR_END, 1, now, opened, hourSeconds);
      if (endpoint.contentPerMinute !== Infinity) {
        this.#records.addTo(record, endpoint.id + 1, 1, now, opened, minuteSeconds);
      }
      if (endpoint.contentPerHour !== Infinity) {
        this.#records.addTo(record, endpoint.id + 2, 1, now, opened, hourSeconds);
      }
    }
    if (this.#tracking) this.#records.markChanged(ask.key, words, at);
    verdict.refusedBy = -1;
    verdict.until = 0;
    verdict.ticket = record;
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

import { windowIdOf, windowName } from '../endpoints.ts';
import {
  type Ask,
  type CallerState,
  type LimitRules,
  LIMITS,
  type LimitStore,
  type Verdict,
  type WindowState,
} from '../types.ts';
import { EMPTY, Slab } from './slab.ts';

// A caller's record. Times are seconds since `EPOCH_SECONDS`, so that they stay small integers until 2088.
const CORE_USED = 0;
const CORE_END = 1;
const MINUTE_USED = 2;
const MINUTE_END = 3;
const HOUR_USED = 4;
const HOUR_END = 5;
const CPU_MICROS = 6;
const GRAPHQL_MICROS = 7;
const CPU_END = 8;
const UNDER_WAY = 9;
/** The first of the caller's other windows is part of the record; the rest is linked to it. */
const WINDOWS = 10;
const CHANGED = 14;

// Each of the other windows: a category but core, an endpoint's points, an endpoint's own content.
const ID = 0;
const USED = 1;
const END = 2;
const NEXT = 3;

/** No window has this id: the first place of a new record is free. */
const NO_WINDOW = -1;

const EPOCH_SECONDS = 1_577_836_800; // 2020-01-01
const CHUNK_MASK = 0xff_ff;
const LARGEST = 0x7f_ff_ff_ff;

/** The windows that every record has, and the factor from what is kept to what is shown (CPU in milliseconds). */
const FIXED_WINDOWS = [
  { name: 'core', used: CORE_USED, end: CORE_END, scale: 1 },
  { name: 'content-minute', used: MINUTE_USED, end: MINUTE_END, scale: 1 },
  { name: 'content-hour', used: HOUR_USED, end: HOUR_END, scale: 1 },
  { name: 'cpu', used: CPU_MICROS, end: CPU_END, scale: 1000 },
  { name: 'graphql-cpu', used: GRAPHQL_MICROS, end: CPU_END, scale: 1000 },
] as const;

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
  readonly #slab = new Slab();
  readonly #records = new Map<string, number>();
  readonly #changed: string[] | undefined;
  /** Goes round through the callers, in search of those that are over. */
  #hand: MapIterator<[string, number]>;
  /** Filled and returned by each decision: the caller reads it before the next one. */
  readonly #verdict = { refusedBy: -1, until: 0, shadowed: 0, used: 0, reset: 0, nowMs: 0, ticket: -1 };
  #shadowRules: LimitRules | undefined;
  #shadowBits = 0;

  constructor({ now = Date.now, trackChanges = false }: MemoryStoreOptions = {}) {
    this.#now = now;
    this.#changed = trackChanges ? [] : undefined;
    this.#hand = this.#records.entries();
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
    const now = Math.floor(nowMs / 1000) - EPOCH_SECONDS;
    const { endpoint, rules, points } = ask;
    const known = this.#records.get(ask.key) ?? EMPTY;
    const words = this.#slab.chunk(known);
    const at = known & CHUNK_MASK;
    const primarySeconds = rules.categories[endpoint.category].windowSeconds;
    const used =
      endpoint.categoryIndex === 0
        ? spent(words, at + CORE_USED, at + CORE_END, now, primarySeconds)
        : this.#spentOf(known, endpoint.categoryIndex, now, primarySeconds);

    let exceeded = 0;
    if (endpoint.primary && used >= ask.limit) exceeded = PRIMARY_BIT;
    if (points > 0) {
      const { limit, windowSeconds } = endpoint.graphql ? rules.graphqlPoints : rules.restPoints;
      if (this.#spentOf(known, endpoint.id, now, windowSeconds) + points > limit) exceeded |= POINTS_BIT;
    }
    if (words[at + UNDER_WAY]! >= rules.concurrent.limit) exceeded |= CONCURRENT_BIT;
    const { totalSeconds, graphqlSeconds, windowSeconds: cpuSeconds } = rules.cpu;
    const cpuOpen = isOpen(words[at + CPU_END]!, now, cpuSeconds);
    if (cpuOpen) {
      if (words[at + CPU_MICROS]! >= totalSeconds * 1e6) exceeded |= CPU_BIT;
      if (endpoint.graphql && words[at + GRAPHQL_MICROS]! >= graphqlSeconds * 1e6) exceeded |= GRAPHQL_CPU_BIT;
    }
    if (endpoint.content) exceeded |= this.#exceededContent(ask, known, now);

    const shadow = rules.shadow.length === 0 ? 0 : this.#shadowOf(rules);
    const refusing = exceeded & ~shadow;
    const verdict = this.#verdict;
    verdict.nowMs = nowMs;
    verdict.shadowed = exceeded & shadow;
    if (refusing !== 0) {
      this.#refuse(ask, known, now, refusing, used);
      return verdict;
    }

    const record = known === EMPTY ? this.#insert(ask.key, now) : known;
    this.#spend(ask, record, now, Math.ceil(nowMs / 1000) - EPOCH_SECONDS, cpuOpen);
    return verdict;
  }

  release({ key, endpoint, rules }: Ask, ticket: number, cpuSeconds: number): void {
    const words = this.#slab.chunk(ticket);
    const at = ticket & CHUNK_MASK;
    words[at + UNDER_WAY]! -= 1;
    if (cpuSeconds === 0) return;
    const nowMs = this.#now();
    if (!isOpen(words[at + CPU_END]!, Math.floor(nowMs / 1000) - EPOCH_SECONDS, rules.cpu.windowSeconds)) {
      words[at + CPU_END] = Math.ceil(nowMs / 1000) - EPOCH_SECONDS + rules.cpu.windowSeconds;
      words[at + CPU_MICROS] = 0;
      words[at + GRAPHQL_MICROS] = 0;
    }
    const micros = Math.min(LARGEST, Math.round(cpuSeconds * 1e6));
    words[at + CPU_MICROS] = Math.min(LARGEST, words[at + CPU_MICROS]! + micros);
    if (endpoint.graphql) words[at + GRAPHQL_MICROS] = Math.min(LARGEST, words[at + GRAPHQL_MICROS]! + micros);
    if (this.#changed !== undefined) this.#markChanged(key, words, at);
  }

  chargeContent(key: string, count: number, rules: LimitRules): void {
    const nowMs = this.#now();
    const now = Math.floor(nowMs / 1000) - EPOCH_SECONDS;
    const record = this.#records.get(key) ?? this.#insert(key, now);
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    const opened = Math.ceil(nowMs / 1000) - EPOCH_SECONDS;
    add(words, at + MINUTE_USED, at + MINUTE_END, count, now, opened, rules.contentPerMinute.windowSeconds);
    add(words, at + HOUR_USED, at + HOUR_END, count, now, opened, rules.contentPerHour.windowSeconds);
    if (this.#changed !== undefined) this.#markChanged(key, words, at);
  }

  peek(key: string): CallerState {
    const now = Math.floor(this.#now() / 1000) - EPOCH_SECONDS;
    return this.#stateOf(key, this.#records.get(key) ?? EMPTY, now);
  }

  async *scan(): AsyncGenerator<CallerState> {
    for (const [key, record] of this.#records) {
      const state = this.#stateOf(key, record, Math.floor(this.#now() / 1000) - EPOCH_SECONDS);
      if (state.windows.length > 0 || state.underWay > 0) yield state;
    }
  }

  /** The states of the callers whose counts have changed since the last call. */
  takeChanged(): CallerState[] {
    const now = Math.floor(this.#now() / 1000) - EPOCH_SECONDS;
    const keys = this.#changed?.splice(0) ?? [];
    return keys.map((key) => {
      const record = this.#records.get(key) ?? EMPTY;
      if (record !== EMPTY) this.#slab.chunk(record)[(record & CHUNK_MASK) + CHANGED] = 0;
      return this.#stateOf(key, record, now);
    });
  }

  /** Puts back what `takeChanged` gave out, perhaps in another process. Windows of unknown names are left out. */
  restore({ key, windows }: CallerState): void {
    const now = Math.floor(this.#now() / 1000) - EPOCH_SECONDS;
    const record = this.#records.get(key) ?? this.#insert(key, now);
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    for (const { name, used, reset } of windows) {
      const end = reset - EPOCH_SECONDS;
      const place = FIXED_WINDOWS.find((fixed) => fixed.name === name);
      if (place !== undefined) {
        words[at + place.used] = Math.round(used * place.scale);
        words[at + place.end] = end;
        continue;
      }
      const id = windowIdOf(name);
      if (id !== undefined) this.#addTo(record, id, used, now, end, 0);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#records.clear();
  }

  /** What was spent in one of the caller's other windows; 0 when it is not open. */
  #spentOf(record: number, id: number, now: number, seconds: number): number {
    for (let address = record + WINDOWS; address !== 0;) {
      const words = this.#slab.chunk(address);
      const at = address & CHUNK_MASK;
      if (words[at + ID] === id) return spent(words, at + USED, at + END, now, seconds);
      address = words[at + NEXT]!;
    }
    return 0;
  }

  #endOf(record: number, id: number): number {
    for (let address = record + WINDOWS; address !== 0;) {
      const words = this.#slab.chunk(address);
      const at = address & CHUNK_MASK;
      if (words[at + ID] === id) return words[at + END]!;
      address = words[at + NEXT]!;
    }
    return 0;
  }

  #exceededContent({ endpoint, rules }: Ask, record: number, now: number): number {
    const { contentPerMinute: minute, contentPerHour: hour } = rules;
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    let exceeded = 0;
    if (spent(words, at + MINUTE_USED, at + MINUTE_END, now, minute.windowSeconds) >= minute.limit) {
      exceeded = MINUTE_BIT;
    }
    if (spent(words, at + HOUR_USED, at + HOUR_END, now, hour.windowSeconds) >= hour.limit) exceeded |= HOUR_BIT;
    if (endpoint.contentPerMinute !== Infinity) {
      const own = this.#spentOf(record, endpoint.id + 1, now, minute.windowSeconds);
      if (own >= endpoint.contentPerMinute) exceeded |= MINUTE_BIT;
    }
    if (endpoint.contentPerHour !== Infinity) {
      const own = this.#spentOf(record, endpoint.id + 2, now, hour.windowSeconds);
      if (own >= endpoint.contentPerHour) exceeded |= HOUR_BIT;
    }
    return exceeded;
  }

  /** Nothing is spent; says which limit it was and how long it lasts: the primary one, else the longest. */
  #refuse(ask: Ask, record: number, now: number, refusing: number, used: number): void {
    const { endpoint, rules } = ask;
    const verdict = this.#verdict;
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    const opened = Math.ceil(verdict.nowMs / 1000) - EPOCH_SECONDS;
    // A limit that is smaller than the cost of one request refuses it even when nothing was spent.
    const endOr = (end: number, seconds: number): number => (isOpen(end, now, seconds) ? end : opened + seconds);

    const { windowSeconds } = rules.categories[endpoint.category];
    const categoryEnd =
      endpoint.categoryIndex === 0 ? words[at + CORE_END]! : this.#endOf(record, endpoint.categoryIndex);
    verdict.used = used;
    verdict.reset = endOr(categoryEnd, windowSeconds) + EPOCH_SECONDS;
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
    const points = endpoint.graphql ? rules.graphqlPoints : rules.restPoints;
    lasts(POINTS_BIT, endOr(this.#endOf(record, endpoint.id), points.windowSeconds));
    lasts(CPU_BIT, words[at + CPU_END]!);
    lasts(GRAPHQL_CPU_BIT, words[at + CPU_END]!);
    const { contentPerMinute: minute, contentPerHour: hour } = rules;
    // The general limit or the endpoint's own, whichever is used up.
    if (spent(words, at + MINUTE_USED, at + MINUTE_END, now, minute.windowSeconds) >= minute.limit) {
      lasts(MINUTE_BIT, endOr(words[at + MINUTE_END]!, minute.windowSeconds));
    }
    if (this.#spentOf(record, endpoint.id + 1, now, minute.windowSeconds) >= endpoint.contentPerMinute) {
      lasts(MINUTE_BIT, endOr(this.#endOf(record, endpoint.id + 1), minute.windowSeconds));
    }
    if (spent(words, at + HOUR_USED, at + HOUR_END, now, hour.windowSeconds) >= hour.limit) {
      lasts(HOUR_BIT, endOr(words[at + HOUR_END]!, hour.windowSeconds));
    }
    if (this.#spentOf(record, endpoint.id + 2, now, hour.windowSeconds) >= endpoint.contentPerHour) {
      lasts(HOUR_BIT, endOr(this.#endOf(record, endpoint.id + 2), hour.windowSeconds));
    }
  }

  /** Admitted: all the counts at once. */
  #spend({ key, endpoint, rules, points }: Ask, record: number, now: number, opened: number, cpuOpen: boolean): void {
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    const verdict = this.#verdict;
    const cost = endpoint.primary ? 1 : 0;
    const primarySeconds = rules.categories[endpoint.category].windowSeconds;
    if (endpoint.categoryIndex === 0) {
      add(words, at + CORE_USED, at + CORE_END, cost, now, opened, primarySeconds);
      verdict.used = words[at + CORE_USED]!;
      verdict.reset = words[at + CORE_END]! + EPOCH_SECONDS;
    } else {
      const window = this.#addTo(record, endpoint.categoryIndex, cost, now, opened, primarySeconds);
      const others = this.#slab.chunk(window);
      verdict.used = others[(window & CHUNK_MASK) + USED]!;
      verdict.reset = others[(window & CHUNK_MASK) + END]! + EPOCH_SECONDS;
    }
    if (points > 0) {
      const { windowSeconds } = endpoint.graphql ? rules.graphqlPoints : rules.restPoints;
      this.#addTo(record, endpoint.id, points, now, opened, windowSeconds);
    }
    words[at + UNDER_WAY]! += 1;
    if (!cpuOpen) {
      words[at + CPU_MICROS] = 0;
      words[at + GRAPHQL_MICROS] = 0;
      words[at + CPU_END] = opened + rules.cpu.windowSeconds;
    }
    if (endpoint.content) {
      const { contentPerMinute: minute, contentPerHour: hour } = rules;
      add(words, at + MINUTE_USED, at + MINUTE_END, 1, now, opened, minute.windowSeconds);
      add(words, at + HOUR_USED, at + HOUR_END, 1, now, opened, hour.windowSeconds);
      if (endpoint.contentPerMinute !== Infinity) {
        this.#addTo(record, endpoint.id + 1, 1, now, opened, minute.windowSeconds);
      }
      if (endpoint.contentPerHour !== Infinity) {
        this.#addTo(record, endpoint.id + 2, 1, now, opened, hour.windowSeconds);
      }
    }
    if (this.#changed !== undefined) this.#markChanged(key, words, at);
    verdict.refusedBy = -1;
    verdict.until = 0;
    verdict.ticket = record;
  }

  /** Adds to one of the caller's other windows and returns its address; takes the place of one that is over, if any. */
  #addTo(record: number, id: number, amount: number, now: number, opened: number, seconds: number): number {
    let free = 0;
    let last = 0;
    for (let address = record + WINDOWS; address !== 0;) {
      const words = this.#slab.chunk(address);
      const at = address & CHUNK_MASK;
      if (words[at + ID] === id) {
        add(words, at + USED, at + END, amount, now, opened, seconds);
        return address;
      }
      if (free === 0 && words[at + END]! <= now) free = address;
      last = address;
      address = words[at + NEXT]!;
    }
    const address = free === 0 ? this.#slab.takeWindow() : free;
    const words = this.#slab.chunk(address);
    const at = address & CHUNK_MASK;
    words[at + ID] = id;
    words[at + USED] = amount;
    words[at + END] = opened + seconds;
    if (free === 0) {
      words[at + NEXT] = 0;
      this.#slab.chunk(last)[(last & CHUNK_MASK) + NEXT] = address;
    }
    return address;
  }

  #insert(key: string, now: number): number {
    this.#forgetTwo(now);
    const record = this.#slab.takeRecord();
    this.#slab.chunk(record)[(record & CHUNK_MASK) + WINDOWS + ID] = NO_WINDOW;
    this.#records.set(key, record);
    return record;
  }

  #forgetTwo(now: number): void {
    for (let looks = 0; looks < 2; looks += 1) {
      const { done, value } = this.#hand.next();
      if (done === true) {
        this.#hand = this.#records.entries();
        return;
      }
      const [key, record] = value;
      if (!this.#isOver(record, now)) continue;
      this.#records.delete(key);
      this.#giveBack(record);
    }
  }

  #isOver(record: number, now: number): boolean {
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    if (words[at + UNDER_WAY]! > 0 || words[at + CHANGED] !== 0) return false;
    for (const { end } of FIXED_WINDOWS) if (words[at + end]! > now) return false;
    for (let address = record + WINDOWS; address !== 0;) {
      const others = this.#slab.chunk(address);
      if (others[(address & CHUNK_MASK) + END]! > now) return false;
      address = others[(address & CHUNK_MASK) + NEXT]!;
    }
    return true;
  }

  #giveBack(record: number): void {
    let address = this.#slab.chunk(record)[(record & CHUNK_MASK) + WINDOWS + NEXT]!;
    while (address !== 0) {
      const next = this.#slab.chunk(address)[(address & CHUNK_MASK) + NEXT]!;
      this.#slab.giveWindow(address);
      address = next;
    }
    this.#slab.giveRecord(record);
  }

  #markChanged(key: string, words: Int32Array, at: number): void {
    if (words[at + CHANGED] !== 0) return;
    words[at + CHANGED] = 1;
    this.#changed?.push(key);
  }

  #shadowOf(rules: LimitRules): number {
    if (rules !== this.#shadowRules) {
      this.#shadowRules = rules;
      this.#shadowBits = rules.shadow.reduce((bits, name) => bits | (1 << LIMITS.indexOf(name)), 0);
    }
    return this.#shadowBits;
  }

  #stateOf(key: string, record: number, now: number): CallerState {
    const words = this.#slab.chunk(record);
    const at = record & CHUNK_MASK;
    const windows: WindowState[] = [];
    for (const { name, used, end, scale } of FIXED_WINDOWS) {
      if (words[at + end]! <= now) continue;
      windows.push({ name, used: words[at + used]! / scale, reset: words[at + end]! + EPOCH_SECONDS });
    }
    for (let address = record + WINDOWS; address !== 0;) {
      const others = this.#slab.chunk(address);
      const place = address & CHUNK_MASK;
      const end = others[place + END]!;
      if (end > now) {
        const reset = end + EPOCH_SECONDS;
        windows.push({ name: windowName(others[place + ID]!), used: others[place + USED]!, reset });
      }
      address = others[place + NEXT]!;
    }
    return { key, underWay: words[at + UNDER_WAY]!, windows };
  }
}

/**
 * A window is over at its end. One that ends later than a whole window from now was opened before the clock was set
 * back, or under rules with longer windows: nobody should be kept waiting for that.
 */
function isOpen(end: number, now: number, seconds: number): boolean {
  return end > now && end <= now + seconds + 1;
}

function spent(words: Int32Array, used: number, end: number, now: number, seconds: number): number {
  return isOpen(words[end]!, now, seconds) ? words[used]! : 0;
}

function add(
  words: Int32Array,
  used: number,
  end: number,
  amount: number,
  now: number,
  opened: number,
  seconds: number,
): void {
  if (isOpen(words[end]!, now, seconds)) {
    words[used] = Math.min(LARGEST, words[used]! + amount);
    return;
  }
  words[used] = amount;
  words[end] = opened + seconds;
}
